#!/usr/bin/env python3
"""Training steps of samples/char_rnn.cpp, char_lstm.cpp and deepspeech2.cpp in PyTorch, eagerly: milliseconds, as JSON.

Usage: sequences_torch.py [--quick]. One thread. Needs torch (2.15.0 was used). The samples say at their end what a step
takes; deepspeech2 with --data. Where a model can be written in several ways each is timed:

  one-hot     nn.RNN and nn.LSTM over one-hot vectors
  embedding   nn.RNN and nn.LSTM over an embedding of 50 numbers
  cells       a loop over the equations, which takes rows of the input weight, as the samples do
  packed      sequences without their padding
  padded      recurrent layers that read the padding as well
"""
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(1)
quick = "--quick" in sys.argv


def measure(step, least):
    """Median milliseconds of a step, after a tenth of the steps to warm up."""
    for _ in range(max(1, least // 10)):
        step()
    times = []
    for _ in range(least):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    return {"ms": statistics.median(times), "best ms": min(times)}


CHARACTERS, HIDDEN, TEXTS, STEPS = 65, 50, 20, 20


class Library(nn.Module):
    """nn.RNN or nn.LSTM, over one-hot vectors or an embedding."""

    def __init__(self, kind, embedding):
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, 50) if embedding else None
        self.recurrent = kind(50 if embedding else CHARACTERS, HIDDEN)
        self.output = nn.Linear(HIDDEN, CHARACTERS)

    def forward(self, text, memory):
        x = self.embedding(text) if self.embedding else F.one_hot(text, CHARACTERS).float()
        y, memory = self.recurrent(x, memory)
        return self.output(y.flatten(0, 1)), memory


class Cells(nn.Module):
    """The equations, step by step."""

    def __init__(self, gates):
        super().__init__()
        self.gates = gates
        bound = HIDDEN**-0.5
        uniform = lambda *shape: nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))
        self.input, self.hidden = uniform(CHARACTERS, gates * HIDDEN), uniform(HIDDEN, gates * HIDDEN)
        self.bias = uniform(gates * HIDDEN)
        self.output = nn.Linear(HIDDEN, CHARACTERS)

    def forward(self, text, memory):
        inputs = F.embedding(text, self.input) + self.bias
        shown = []
        for x in inputs:
            if self.gates == 1:
                memory = (torch.tanh(torch.addmm(x, memory[0], self.hidden)),)
            else:
                i, f, g, o = torch.addmm(x, memory[0], self.hidden).chunk(4, 1)
                c = f.sigmoid() * memory[1] + i.sigmoid() * g.tanh()
                memory = (o.sigmoid() * c.tanh(), c)
            shown.append(memory[0])
        return self.output(torch.cat(shown)), memory


def characters(model, memory):
    optimiser = torch.optim.Adagrad(model.parameters(), lr=0.1)
    text = torch.randint(CHARACTERS, (STEPS, TEXTS))
    following = torch.randint(CHARACTERS, (STEPS * TEXTS,))
    state = memory

    def step():
        nonlocal state
        optimiser.zero_grad()
        scores, state = model(text, state)
        state = tuple(s.detach() for s in state) if isinstance(state, tuple) else state.detach()
        loss = F.cross_entropy(scores, following, reduction="sum") / TEXTS
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 5)
        optimiser.step()
        return loss.item()

    return measure(step, 30 if quick else 500)


class Speech(nn.Module):
    def __init__(self, channels, frequencies, hidden, classes, packed):
        super().__init__()
        self.packed = packed
        self.convolution = nn.Conv2d(1, channels, (11, 41), stride=2, padding=(5, 20), bias=False)
        self.norm = nn.BatchNorm2d(channels)
        sizes = [channels * ((frequencies + 1) // 2), hidden]
        self.norms = nn.ModuleList(nn.BatchNorm1d(n) for n in sizes)
        self.reads = nn.ModuleList(nn.GRU(n, hidden, bidirectional=True) for n in sizes)
        self.output = nn.Linear(hidden, classes)

    def forward(self, x, frames):
        y = self.norm(self.convolution(x.unsqueeze(1))).clamp(0, 20)
        y = y.permute(2, 0, 1, 3).flatten(2)
        steps, batch, _ = y.shape
        ends = (frames + 1) // 2
        y = y * (torch.arange(steps)[:, None] < ends).unsqueeze(2)
        for norm, read in zip(self.norms, self.reads):
            y = norm(y.flatten(0, 1)).unflatten(0, (steps, batch))
            if self.packed:
                packed = nn.utils.rnn.pack_padded_sequence(y, ends, enforce_sorted=False)
                y, _ = nn.utils.rnn.pad_packed_sequence(read(packed)[0], total_length=steps)
            else:
                y, _ = read(y)
            y = y[..., : read.hidden_size] + y[..., read.hidden_size :]
        return self.output(y.flatten(0, 1)).unflatten(0, (steps, batch)).log_softmax(2), ends


def speech(packed):
    batch, frames, frequencies, channels, hidden, letters, classes = (
        (4, 60, 41, 8, 16, 5, 29) if quick else (20, 279, 161, 8, 64, 32, 29)
    )
    model = Speech(channels, frequencies, hidden, classes, packed)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = torch.randn(batch, frames, frequencies)
    lengths = torch.linspace(frames // 3, frames, batch).long()
    counts = torch.linspace(letters // 4, letters, batch).long()
    labels = torch.randint(1, classes, (batch, letters))

    def step():
        optimiser.zero_grad()
        y, ends = model(x, lengths)
        loss = F.ctc_loss(y, labels, ends, counts)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimiser.step()
        return loss.item()

    return measure(step, 3 if quick else 20)


def main():
    zero = torch.zeros(TEXTS, HIDDEN)
    layer = zero.unsqueeze(0)
    results = {}
    for name, kind, gates in (("char rnn", nn.RNN, 1), ("char lstm", nn.LSTM, 4)):
        memory = layer if gates == 1 else (layer, layer)
        results[name + " one-hot"] = characters(Library(kind, False), memory)
        results[name + " embedding"] = characters(Library(kind, True), memory)
        results[name + " cells"] = characters(Cells(gates), (zero,) if gates == 1 else (zero, zero))
    results["deep speech 2 packed"] = speech(True)
    results["deep speech 2 padded"] = speech(False)
    json.dump({"system": "torch " + torch.__version__, "results": results}, sys.stdout, indent=1)
    print()


main()
