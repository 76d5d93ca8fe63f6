import { escapeHtml } from '../../src/base/escape-html.ts';

/** A page that loads nothing: its style is in it, and it needs no script. `body` is HTML, `style` further CSS. */
export function htmlPage(title: string, body: string, style = ''): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<style>${PAGE_STYLE}${style}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
${body}
</main>
</body>
</html>
`;
}

/** Cells are HTML. The first of a row is its head. */
export function htmlTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (row: readonly string[]): string =>
    `<tr>${row.map((cell, i) => (i === 0 ? `<th scope="row">${cell}</th>` : `<td>${cell}</td>`)).join('')}</tr>`;
  const names = head.map((name) => `<th scope="col">${name}</th>`).join('');
  return `<div class="scroll"><table><thead><tr>${names}</tr></thead><tbody>${rows.map(line).join('\n')}</tbody></table></div>`;
}

/** The style of a report's page: light or dark as the reader's system, light in print. */
const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --ground: #f6f7f6;
  --surface: #ffffff;
  --line: #d9dedc;
  --text: #17211f;
  --muted: #55635f;
  --reached: #0b6e6e;
  --waste: #c47a12;
  --empty: #e8ecea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #101615;
    --surface: #182120;
    --line: #2f3b39;
    --text: #e6edeb;
    --muted: #9cada8;
    --reached: #5ec4bd;
    --waste: #e5a94e;
    --empty: #2a3634;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0;
  background: var(--ground);
  color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 76rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { margin: 0 0 1.25rem; font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { margin: 0 0 0.25rem; font-size: 1.15rem; }
section { margin-top: 2rem; }
p { margin: 0 0 0.75rem; color: var(--muted); max-width: 48rem; }
.facts { display: flex; flex-wrap: wrap; gap: 0.75rem; margin: 0; }
.facts div {
  flex: 1 1 8.5rem;
  padding: 0.6rem 0.9rem;
  background: var(--surface);
  border: 1px solid var(--line);
  border-radius: 8px;
}
.facts dt { color: var(--muted); font-size: 0.85rem; }
.facts dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.note { margin-top: 1rem; }
.scroll { overflow-x: auto; margin-top: 0.6rem; background: var(--surface); border: 1px solid var(--line); border-radius: 8px; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.5rem 0.75rem; text-align: right; vertical-align: top; white-space: nowrap; }
th:first-child { text-align: left; }
thead th { color: var(--muted); font-weight: 600; font-size: 0.85rem; border-bottom: 1px solid var(--line); }
tbody tr + tr > * { border-top: 1px solid var(--line); }
.value { display: block; }
.bar { display: block; height: 5px; min-width: 4.5rem; margin-top: 4px; background: var(--empty); border-radius: 3px; overflow: hidden; }
.bar i { display: block; height: 100%; border-radius: 3px; }
.reached i { background: var(--reached); }
.waste i { background: var(--waste); }
@media print {
  :root {
    color-scheme: light;
    --ground: #fff;
    --surface: #fff;
    --line: #c8cecc;
    --text: #000;
    --muted: #444;
    --reached: #0b6e6e;
    --waste: #c47a12;
    --empty: #e8ecea;
  }
  body { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; border: none; }
  th, td { padding: 0.25rem 0.4rem; white-space: normal; }
  tr, li { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
`;
