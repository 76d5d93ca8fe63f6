import { TrawlError } from '../src/errors.ts';
import { columnNames } from './check-row.ts';
import { contentsOf } from './contents-of.ts';
import { columnOf, formatLocation, type PassageLocation, type PassageRow } from './passage.ts';

/** The template that is used when none is given. */
export const DEFAULT_PASSAGE_TEMPLATE = '{contents}';

/** The text to embed of one row. The location is for the message of an error. */
export type PassageTemplate = (row: PassageRow, location?: PassageLocation) => string;

type Part = { readonly kind: 'literal'; readonly text: string } | { readonly kind: 'column'; readonly name: string };

/**
 * A template is text with column names in braces: `{title} {text}`. `{contents}` is what `contentsOf` gives, whether
 * the row has such a column or a title and a text. `{{` and `}}` stand for the braces themselves.
 */
export function parseTemplate(template: string = DEFAULT_PASSAGE_TEMPLATE): PassageTemplate {
  const parts = parseParts(template);
  if (!parts.some(({ kind }) => kind === 'column')) {
    throw invalid(template, 'it names no column, so every passage would have the same text');
  }
  return (row, location) => parts.map((part) => render(part, row, template, location)).join('');
}

function parseParts(template: string): Part[] {
  const parts: Part[] = [];
  // Every brace starts exactly one of these, or is one too many.
  const token = /\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+/g;
  for (const match of template.matchAll(token)) {
    const [found, name] = match;
    if (name !== undefined) parts.push({ kind: 'column', name: checkName(name, template) });
    else if (found === '{{' || found === '}}') parts.push({ kind: 'literal', text: found[0]! });
    else if (found === '{' || found === '}') {
      throw invalid(
        template,
        `the ${found} at position ${match.index + 1} has no partner; write ${found}${found} for the brace itself`,
      );
    } else parts.push({ kind: 'literal', text: found });
  }
  return parts;
}

/** Format specifications as in Python's `{text:.100}` would be read as names that no row has: better said at once. */
function checkName(name: string, template: string): string {
  if (name === '') throw invalid(template, 'a pair of braces is empty; write the name of a column in it');
  if (name !== name.trim()) throw invalid(template, `the name in {${name}} has spaces around it`);
  if (/[:!]/.test(name)) throw invalid(template, `{${name}} has a format or conversion, which is not supported`);
  return name;
}

function render(part: Part, row: PassageRow, template: string, location: PassageLocation | undefined): string {
  if (part.kind === 'literal') return part.text;
  if (part.name === 'contents') return contentsOf(row);
  const value = columnOf(row, part.name);
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value);
    default: {
      const found = value === undefined ? 'no such column' : value === null ? 'null in it' : 'no text or number in it';
      const where = location === undefined ? '' : `${formatLocation(location)}: `;
      throw new TrawlError(
        'TEMPLATE_INVALID',
        `${where}the passage template ${JSON.stringify(template)} names the column ${JSON.stringify(part.name)}, and ` +
          `this row has ${found}; it has ${columnNames(row)}. Change --passage-template, or fill the column.`,
        { details: { column: part.name, ...location } },
      );
    }
  }
}

function invalid(template: string, reason: string): TrawlError {
  return new TrawlError(
    'TEMPLATE_INVALID',
    `The passage template ${JSON.stringify(template)} is not valid: ${reason}. Expected text with column names in ` +
      'braces, such as {title} {text}.',
  );
}
