// What is the same on every page: its looks, and what pointing at a line does.
#pragma once

namespace lantern::tool {

inline constexpr const char* page_style = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1f2328; --faint: #8b949e; --rule: #d0d7de; --panel: #f6f8fa;
  --mark: #fff3bf; --edge: #e8a500; --accent: #0b62c4; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --faint: #7d8590; --rule: #30363d;
  --panel: #161b22; --mark: #4a3d00; --edge: #e3b341; --accent: #58a6ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 14px/1.5 system-ui, "DejaVu Sans", sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: baseline; padding: .6rem 1rem;
  border-bottom: 1px solid var(--rule); }
h1 { font-size: 1.05rem; margin: 0; }
header p { margin: 0; color: var(--faint); }
nav { display: flex; flex-wrap: wrap; gap: .25rem; }
button { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--rule); border-radius: 6px;
  padding: .1rem .7rem; cursor: pointer; }
button[aria-pressed=true] { background: var(--accent); border-color: var(--accent); color: #fff; }
main { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); height: 64vh; min-height: 20rem; }
section { display: flex; flex-direction: column; min-height: 0; border-right: 1px solid var(--rule); }
section:last-child { border-right: 0; }
h2 { font-size: .8rem; font-weight: 600; margin: 0; padding: .3rem .8rem; background: var(--panel);
  border-bottom: 1px solid var(--rule); }
.code { overflow: auto; flex: 1; padding: .4rem 0; font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace;
  tab-size: 4; }
.code div { white-space: pre; padding-right: 1rem; width: max-content; min-width: 100%; border-left: 3px solid transparent; }
.code div::before { content: attr(data-n); display: inline-block; width: 3.2em; margin-right: 1em; text-align: right;
  color: var(--faint); user-select: none; }
.code div.linked { cursor: pointer; }
.source div.linked::before { color: var(--accent); font-weight: 600; }
.code div.on { background: var(--mark); border-left-color: var(--edge); }
.code h3 { font: 600 12px/1.5 system-ui, "DejaVu Sans", sans-serif; color: var(--faint); margin: .4rem .8rem; }
#graph { border-top: 1px solid var(--rule); }
.picture { overflow: auto; max-height: 80vh; padding: 1rem; background: #fff; color: #1f2328; text-align: center; }
.picture svg { height: auto; }
.picture g.node.linked { cursor: pointer; }
.picture g.node.on path, .picture g.node.on polygon, .picture g.node.on ellipse { stroke: #d9480f; stroke-width: 3; }
[hidden] { display: none !important; }
@media (max-width: 60rem) { main { grid-template-columns: 1fr; height: auto; } .code { max-height: 24rem; } }
)css";

// Every element of class linked carries a class at-...: all that have the same belong together.
inline constexpr const char* page_script = R"js(
const key = e => e && [...e.classList].find(c => c.startsWith('at-'));
let marked = null, held = false;
function mark(name, from) {
  if (name === marked) return;
  document.querySelectorAll('.on').forEach(e => e.classList.remove('on'));
  marked = name;
  if (!name) return;
  const panes = new Set();
  [...document.getElementsByClassName(name)].forEach(e => {
    e.classList.add('on');
    const pane = e.closest('.code');
    if (!pane || pane.contains(from) || panes.has(pane) || e.closest('[hidden]')) return;
    panes.add(pane);
    show(e, pane);
  });
}
function show(e, pane) {
  const box = pane.getBoundingClientRect(), line = e.getBoundingClientRect();
  if (line.top < box.top || line.bottom > box.bottom) pane.scrollTop += line.top - box.top - box.height / 3;
}
document.addEventListener('mouseover', e => {
  if (held) return;
  const at = e.target.closest('.linked');
  mark(key(at), at);
});
document.addEventListener('click', e => {
  const at = e.target.closest('.linked');
  held = !!at && !(held && key(at) === marked);
  mark(key(at), at);
});
const tabs = [...document.querySelectorAll('nav button')];
function choose(name) {
  tabs.forEach(b => b.setAttribute('aria-pressed', b.dataset.show === name));
  document.querySelectorAll('[data-of]').forEach(e => { e.hidden = e.dataset.of !== name; });
  held = false;
  mark(null);
  const first = key(document.querySelector('.code[data-of]:not([hidden]) .linked'));
  const line = first && document.querySelector('.source .' + CSS.escape(first));
  if (line) show(line, line.closest('.code'));
}
tabs.forEach(b => b.addEventListener('click', e => { choose(b.dataset.show); e.stopPropagation(); }));
choose(tabs[0].dataset.show);
)js";

}  // namespace lantern::tool
