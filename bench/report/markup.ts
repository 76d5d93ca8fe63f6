import { escapeHtml } from '../../src/base/escape-html.ts';

/** Markup that is ready to be put into a page. */
export type Markup = string & { readonly markup: true };

/** The text with the characters that HTML and SVG interpret replaced. */
export function escaped(text: string): Markup {
  return escapeHtml(text) as Markup;
}

/** An element. Texts among `children` are escaped; numbers in attributes are rounded to two decimals. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number | undefined>> = {},
  ...children: readonly (Markup | { readonly text: string })[]
): Markup {
  const given = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${typeof value === 'number' ? Number(value.toFixed(2)) : escaped(value!)}"`);
  const inner = children.map((child) => (typeof child === 'string' ? child : escaped(child.text))).join('');
  return `<${name}${given.join('')}>${inner}</${name}>` as Markup;
}

/** Elements without a text of their own, one after the other. */
export function joined(parts: readonly Markup[]): Markup {
  return parts.join('') as Markup;
}

/** An element with one text. */
export function textElement(name: string, text: string, attributes: Parameters<typeof element>[1] = {}): Markup {
  return element(name, attributes, { text });
}
