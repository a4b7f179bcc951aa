// What is the same on every page: its looks, and what pointing at a line does.
#pragma once

namespace lantern::tool {

inline constexpr const char* page_style = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1f2328; --faint: #8b949e; --rule: #d0d7de; --panel: #f6f8fa;
  --mark: #fff3bf; --edge: #e8a500; --accent: #0b62c4; --item: #fff; --wire: #9aa4af; --forward: #3f83d8; --backward: #e07b1a;
  --function: #f6f8fa; --loop: #fdf8ea; --branch: #f4f1fb; --parameter: #e6f4ea; --effect: #fdecea; --result: #eaf1fb; --call: #eef0fb; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --faint: #7d8590; --rule: #30363d;
  --panel: #161b22; --mark: #4a3d00; --edge: #e3b341; --accent: #58a6ff; --item: #0d1117; --wire: #57606a;
  --function: #11161d; --loop: #211c10; --branch: #1b1728; --parameter: #12261a; --effect: #2c1615; --result: #0f2237; --call: #191c36; } }
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: flex; flex-direction: column; background: var(--back); color: var(--text);
  font: 14px/1.5 system-ui, "DejaVu Sans", sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; align-items: baseline; padding: .5rem .8rem;
  border-bottom: 1px solid var(--rule); }
h1 { font-size: 1.05rem; margin: 0; }
header p { margin: 0; color: var(--faint); font-size: .85rem; }
nav { display: flex; flex-wrap: wrap; gap: .25rem; }
button { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--rule); border-radius: 6px;
  padding: .1rem .7rem; cursor: pointer; }
button[aria-pressed=true] { background: var(--accent); border-color: var(--accent); color: #fff; }
.part { display: inline-block; width: 4px; height: .8em; border-radius: 2px; margin: 0 .35em 0 .8em; vertical-align: -1px; }
.part.forward { background: var(--forward); }
.part.backward { background: var(--backward); }
main { display: flex; flex: 1; min-height: 0; }
section { display: flex; flex-direction: column; min-height: 0; min-width: 8rem; width: 26%; flex: none;
  border-right: 1px solid var(--rule); resize: horizontal; overflow: hidden; }
section + section { width: 42%; }
section:last-child { border-right: 0; resize: none; flex: 1; }
h2 { font-size: .8rem; font-weight: 600; margin: 0; padding: .3rem .8rem; background: var(--panel);
  border-bottom: 1px solid var(--rule); display: flex; align-items: center; gap: .25rem; min-height: 2.2rem; }
h2 span { flex: 1; }
h2 button { font-size: .75rem; padding: 0 .5rem; background: var(--back); }
.pane { overflow: auto; flex: 1; font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; tab-size: 4; }
.code { padding: .4rem 0; }
.code div[data-n] { white-space: pre; padding-right: 1rem; width: max-content; min-width: 100%; border-left: 3px solid transparent; }
.code div[data-n]::before { content: attr(data-n); display: inline-block; width: 3.2em; margin-right: 1em; text-align: right;
  color: var(--faint); user-select: none; }
.linked { cursor: pointer; }
.source div.linked::before { color: var(--accent); font-weight: 600; }
.code div.on { background: var(--mark); border-left-color: var(--edge); }
.code h3 { font: 600 12px/1.5 system-ui, "DejaVu Sans", sans-serif; color: var(--faint); margin: .4rem .8rem; }
.drawn { padding: .8rem; font-size: 11px; }
.drawn > div { width: max-content; min-width: 100%; }
.box { border: 1px solid var(--rule); border-radius: 7px; border-left-width: 4px; width: max-content; position: relative; }
.box[open] { min-width: 100%; }
.drawn > div > .box { margin-bottom: .8rem; }
.box > summary { padding: .2rem .6rem; cursor: pointer; white-space: pre; border-radius: 6px; }
.box i { color: var(--faint); font-style: normal; }
.function { background: var(--function); }
.loop { background: var(--loop); }
.branch { background: var(--branch); }
.group { background: var(--item); border-style: dashed; border-left-style: solid; }
.blocks { display: flex; gap: 1rem; padding: .3rem .9rem .8rem; }
.block { position: relative; flex: none; }
.block:last-child { flex: 1 0 auto; }
.block > svg { position: absolute; inset: 0; width: 100%; height: 100%; pointer-events: none; overflow: visible; }
.block path { fill: none; stroke: var(--wire); stroke-width: 1.2; }
.block path.hot { stroke: var(--accent); stroke-width: 2; }
.block h4 { font: inherit; color: var(--faint); margin: 0 0 .2rem; }
.block p { color: var(--faint); margin: .4rem 0; }
.row { display: flex; position: relative; margin-bottom: 1.25rem; }
.row:last-child { margin-bottom: 0; }
span.node { flex: none; white-space: pre; padding: .05rem 0 .05rem 1.3ch; border: 1px solid var(--rule); border-radius: 4px;
  background: var(--item); overflow: hidden; position: relative; }
span.node i { float: right; padding-right: .8ch; color: var(--faint); font-style: normal; }
span.parameter { background: var(--parameter); }
span.effect { background: var(--effect); }
span.call { background: var(--call); }
span.result { background: var(--result); }
.node.forward { border-left: 4px solid var(--forward); }
.node.backward { border-left: 4px solid var(--backward); }
span.node.on, .box.on > summary, .box.holds:not([open]) > summary { background: var(--mark); outline: 2px solid var(--edge); }
.box.holds:not([open]) > summary { outline-style: dashed; }
[hidden] { display: none !important; }
@media (max-width: 60rem) { body { height: auto; } main { display: block; } section, section + section { width: auto; resize: none; } .pane { max-height: 32rem; } }
)css";

inline constexpr const char* page_legend =
    "<p>Point at a line or an item to see what it became; click to hold it. Boxes open on a click."
    "<span class=\"part forward\"></span>forward part<span class=\"part backward\"></span>backward part</p>\n";

/// What the graph's pane shows.
inline constexpr const char* page_views =
    "<span></span><button id=\"unfold\">unfold all</button><button id=\"fold\">fold all</button>"
    "<button id=\"as-text\" aria-pressed=\"false\">as text</button>";

// Every element of class linked carries a class at-...: all that have the same belong together.
inline constexpr const char* page_script = R"js(
const key = e => e && [...e.classList].find(c => c.startsWith('at-'));
const all = (what, root = document) => [...root.querySelectorAll(what)];
const seen = e => e.getClientRects().length > 0;
let marked = null, held = false;
function mark(name, from) {
  if (name === marked) return;
  all('.on').forEach(e => e.classList.remove('on'));
  all('.holds').forEach(e => e.classList.remove('holds'));
  marked = name;
  if (!name) return;
  const panes = new Set();
  all('.' + CSS.escape(name)).forEach(e => {
    e.classList.add('on');
    for (let b = e.parentElement.closest('.box'); b; b = b.parentElement.closest('.box')) b.classList.add('holds');
    const pane = e.closest('.pane');
    if (!pane || pane.contains(from) || panes.has(pane) || !seen(e)) return;
    panes.add(pane);
    show(e, pane);
  });
}
function show(e, pane) {
  const box = pane.getBoundingClientRect(), line = e.getBoundingClientRect();
  if (line.top < box.top || line.bottom > box.bottom) pane.scrollTop += line.top - box.top - box.height / 3;
}
document.addEventListener('mouseover', e => {
  all('path.hot').forEach(p => p.classList.remove('hot'));
  const node = e.target.closest('.node');
  if (node) all(':scope > svg > path', node.closest('.block') || node).forEach(p => {
    if (p.dataset.from === node.dataset.i || p.dataset.to === node.dataset.i) p.classList.add('hot');
  });
  if (held) return;
  const at = e.target.closest('.linked');
  mark(key(at), at);
});
document.addEventListener('click', e => {
  if (e.target.closest('button')) return;
  const at = e.target.closest('.linked');
  held = !!at && !(held && key(at) === marked) && !e.target.closest('summary');
  mark(key(at), at);
});
// Edges between the items of each block that is to be seen.
function wires() {
  all('.drawn .block').filter(seen).forEach(block => {
    const origin = block.getBoundingClientRect(), at = {};
    all(':scope > .row > .node', block).forEach(n => { at[n.dataset.i] = n.getBoundingClientRect(); });
    const near = (r, x) => Math.min(Math.max(x, r.left + 9), r.right - 9);
    block.firstElementChild.innerHTML = block.dataset.wires.split(' ').filter(w => w).map(w => {
      const [from, to] = w.split('-'), a = at[from], b = at[to], wide = a.width > b.width;
      const x0 = (wide ? near(a, (b.left + b.right) / 2) : (a.left + a.right) / 2) - origin.left;
      const x1 = (wide ? (b.left + b.right) / 2 : near(b, (a.left + a.right) / 2)) - origin.left;
      const y0 = a.bottom - origin.top, y1 = b.top - origin.top, bend = Math.max((y1 - y0) / 2, 8);
      return `<path data-from="${from}" data-to="${to}" d="M${x0} ${y0}C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1}"/>`;
    }).join('');
  });
}
let waiting = false;
function soon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; wires(); });
}
document.addEventListener('toggle', soon, true);
addEventListener('resize', soon);
const tabs = all('nav button');
function choose(name) {
  tabs.forEach(b => b.setAttribute('aria-pressed', b.dataset.show === name));
  all('[data-of]').forEach(e => { e.hidden = e.dataset.of !== name; });
  held = false;
  mark(null);
  const first = key(document.querySelector('.pane [data-of]:not([hidden]) .linked'));
  const line = first && document.querySelector('.source .' + CSS.escape(first));
  if (line) show(line, line.closest('.pane'));
  soon();
}
tabs.forEach(b => b.addEventListener('click', () => choose(b.dataset.show)));
const drawn = document.querySelector('.drawn'), text = drawn.nextElementSibling, as_text = document.getElementById('as-text');
as_text.addEventListener('click', () => {
  drawn.hidden = text.hidden;
  text.hidden = !drawn.hidden;
  as_text.setAttribute('aria-pressed', drawn.hidden);
  soon();
});
const fold = open => all('.drawn > div:not([hidden]) .box').forEach(b => {
  b.open = open || !b.parentElement.closest('.box');
});
document.getElementById('unfold').addEventListener('click', () => fold(true));
document.getElementById('fold').addEventListener('click', () => fold(false));
choose(tabs[0].dataset.show);
)js";

}  // namespace lantern::tool
