/** The style of the report: light and dark, printable, without any file or font of its own. */
export const REPORT_STYLE = `
:root { color-scheme: light dark; --ground:#f6f7f6; --surface:#fff; --line:#d9dedc; --text:#17211f; --muted:#55635f; --soft:#e0efed;
  --c0:#0b6e6e; --c1:#b4690e; --c2:#5b5fc7; --c3:#a03a78; --c4:#8a4b2a; --c5:#3d7d2c; --c6:#7a6a1f; --c7:#6b7773; }
@media (prefers-color-scheme: dark) { :root { --ground:#101615; --surface:#182120; --line:#2f3b39; --text:#e6edeb; --muted:#9cada8;
  --soft:#1d3533; --c0:#5ec4bd; --c1:#e5a94e; --c2:#a3a8f7; --c3:#e08fc4; --c4:#e0a184; --c5:#93cf7d; --c6:#d6c469; --c7:#93a29d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 940px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 1.7rem; margin: 0 0 4px; }
h2 { font-size: 1.2rem; margin: 0 0 2px; }
p { margin: 6px 0; } .muted { color: var(--muted); font-size: .93rem; }
section { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px; margin: 18px 0; }
.warning { border-left: 4px solid var(--c1); padding: 8px 12px; background: var(--surface); margin: 14px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 12px; margin: 18px 0; padding: 0; list-style: none; }
.tiles li { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; }
.tiles strong { display: block; font-size: 1.35rem; line-height: 1.25; color: var(--c0); } .tiles span { color: var(--muted); font-size: .9rem; }
.plot { margin: 12px 0 4px; } .plot svg { display: block; width: 100%; height: auto; } .plot .narrow { display: none; }
svg text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--text); }
svg .tick, svg .label { fill: var(--muted); } svg .label { font-size: 12.5px; } svg .value { font-size: 12px; }
svg .heading { font-weight: 600; } svg .roofname { font-size: 12px; fill: var(--muted); }
svg .grid { stroke: var(--line); stroke-width: 1; } svg .axis { stroke: var(--muted); } svg .roof { stroke: var(--text); stroke-width: 1.6; }
polyline { fill: none; stroke-width: 2; }
${Array.from({ length: 8 }, (_, i) => `.look${i} { fill: var(--c${i}); stroke: var(--c${i}); } .look${i} text { stroke: none; } .part${i} { fill: var(--c${i}); }`).join('\n')}
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 0; margin: 6px 0; list-style: none; font-size: .92rem; }
.legend svg { width: 14px; height: 14px; margin-right: 6px; vertical-align: -2px; }
.wide-table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; margin: 8px 0; }
th, td { text-align: right; padding: 5px 9px; border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; vertical-align: top; }
th { color: var(--muted); font-weight: 600; vertical-align: bottom; } td { white-space: nowrap; } .text { text-align: left; white-space: normal; } .text:first-child { min-width: 9.5em; } .text + .text { min-width: 6.5em; }
.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; } .facts td:first-child { min-width: 7em; overflow-wrap: normal; color: var(--muted); }
details { margin-top: 8px; } summary { cursor: pointer; color: var(--c0); } code { font: .88em ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
@media (max-width: 600px) { main { padding: 18px 12px 40px; } section { padding: 14px 12px; } .plot .wide { display: none; } .plot .narrow { display: block; } }
@media print { :root { color-scheme: light; --ground:#fff; --surface:#fff; --line:#c8cecc; --text:#000; --muted:#444; --soft:#eee;
  --c0:#0b6e6e; --c1:#b4690e; --c2:#5b5fc7; --c3:#a03a78; --c4:#8a4b2a; --c5:#3d7d2c; --c6:#7a6a1f; --c7:#6b7773; }
  body { font-size: 11pt; } main { max-width: none; padding: 0; } section { border: none; border-top: 1px solid var(--line); border-radius: 0; padding: 10px 0; }
  h2, h2 + p { break-after: avoid; } .plot, .legend, tr, .tiles li { break-inside: avoid; } details::details-content { content-visibility: visible; display: block; }
  .plot .wide { display: block; } .plot .narrow { display: none; } .wide-table { overflow: visible; } .wide-table table { font-size: 8pt; } .wide-table th, .wide-table td { padding: 3px 4px; } }
`;
