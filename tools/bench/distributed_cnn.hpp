// Steps of training a network on several ranks, beside the same steps on one.
#pragma once

namespace lantern::bench {

struct CnnSteps {
  double one = 0, all = 0;  ///< seconds of a step on one rank, while the others sleep, and on all
  double ratio = 0;         ///< how much faster all are: the median of the rounds
  double most = 0;          ///< the same where each trains by itself on its part: what the processors allow
};

/// Trains the network of samples/mnist_cnn.cpp on batches of `batch` pictures. The batch is divided among the ranks, and
/// each rank has one thread. All ranks call it.
CnnSteps cnn_steps(int batch, int rounds);

}  // namespace lantern::bench
