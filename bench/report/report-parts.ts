import { element, type Markup, textElement } from './markup.ts';

/** A section with a heading, a sentence that says how to read it, and what follows. Empty if `content` is. */
export function section(heading: string, explanation: string, ...content: readonly Markup[]): Markup {
  if (content.every((part) => part === '')) return '' as Markup;
  return element(
    'section',
    {},
    textElement('h2', heading),
    textElement('p', explanation, { class: 'muted' }),
    ...content,
  );
}

/** A table. Columns of figures are to the right, columns with another text to the left. */
export function table(header: readonly string[], lines: readonly (readonly string[])[]): Markup {
  if (lines.length === 0) return '' as Markup;
  const isText = header.map((_, i) => lines.some((line) => !/^(?:[\d.,]|$)/.test(line[i]!)));
  const row = (name: 'th' | 'td', cells: readonly string[]): Markup =>
    element(
      'tr',
      {},
      ...cells.map((cell, i) =>
        textElement(name, cell, { scope: name === 'th' ? 'col' : undefined, class: isText[i] ? 'text' : undefined }),
      ),
    );
  const body = element('tbody', {}, ...lines.map((line) => row('td', line)));
  return element('div', { class: 'wide-table' }, element('table', {}, element('thead', {}, row('th', header)), body));
}

/** The same, hidden until it is opened. */
export function folded(summary: string, content: Markup): Markup {
  return content === '' ? content : element('details', {}, textElement('summary', summary), content);
}

/** Names and values, both as text. */
export function facts(lines: readonly (readonly [string, string])[]): Markup {
  const rows = lines.map(([name, value]) => element('tr', {}, textElement('td', name), textElement('td', value)));
  return element('table', { class: 'facts' }, element('tbody', {}, ...rows));
}

export function list(items: readonly string[]): Markup {
  return items.length === 0 ? ('' as Markup) : element('ul', {}, ...items.map((item) => textElement('li', item)));
}

export function tiles(items: readonly { readonly figure: string; readonly text: string }[]): Markup {
  if (items.length === 0) return '' as Markup;
  const drawn = items.map(({ figure, text }) =>
    element('li', {}, textElement('strong', figure), textElement('span', text)),
  );
  return element('ul', { class: 'tiles' }, ...drawn);
}
