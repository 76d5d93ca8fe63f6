import { escapeHtml } from '../../src/base/escape-html.ts';
import { PAGE_STYLE } from './page-style.ts';

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
