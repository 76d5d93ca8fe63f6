import { TrawlError } from '../src/base/errors.ts';
import { contentsOf } from '../src/index/passages/contents.ts';
import { columnOf, formatLocation, type PassageLocation, type PassageRow } from './passage.ts';
import { columnNames } from './row-columns.ts';

export const DEFAULT_PASSAGE_TEMPLATE = '{contents}';

/** Gives the text to embed for a row. The location is for error messages. */
export type PassageTemplate = (row: PassageRow, location?: PassageLocation) => string;

type Part = { readonly type: 'literal'; readonly text: string } | { readonly type: 'column'; readonly name: string };

/**
 * Parses a template: text with column names in braces, such as `{title} {text}`. `{contents}` is the result of `contentsOf`.
 * `{{` and `}}` stand for braces.
 *
 * @throws TrawlError TEMPLATE_INVALID; so does the returned function for a column that a row lacks.
 */
export function parseTemplate(template: string = DEFAULT_PASSAGE_TEMPLATE): PassageTemplate {
  const parts = parseParts(template);
  if (!parts.some(({ type }) => type === 'column')) {
    throw invalid(template, 'it has no column, so all passages would have the same text');
  }
  return (row, location) => parts.map((part) => render(part, row, template, location)).join('');
}

function parseParts(template: string): Part[] {
  const parts: Part[] = [];
  // The third alternative matches an unpaired brace, which is an error.
  const token = /\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+/g;
  for (const match of template.matchAll(token)) {
    const [found, name] = match;
    if (name !== undefined) parts.push({ type: 'column', name: checkName(name, template) });
    else if (found === '{{' || found === '}}') parts.push({ type: 'literal', text: found[0]! });
    else if (found === '{' || found === '}') {
      const reason = `the ${found} at position ${match.index + 1} is unmatched; write ${found}${found} for a brace`;
      throw invalid(template, reason);
    } else parts.push({ type: 'literal', text: found });
  }
  return parts;
}

/** Rejects Python's format specifications, such as `{text:.100}`, which would otherwise be unknown columns. */
function checkName(name: string, template: string): string {
  if (name === '') throw invalid(template, 'a pair of braces is empty; put a column name into it');
  if (name !== name.trim()) throw invalid(template, `the name in {${name}} has spaces around it`);
  if (/[:!]/.test(name)) throw invalid(template, `{${name}} has a format or conversion, which is not supported`);
  return name;
}

function render(part: Part, row: PassageRow, template: string, location: PassageLocation | undefined): string {
  if (part.type === 'literal') return part.text;
  const value = part.name === 'contents' ? contentsOf(row) : columnOf(row, part.name);
  if (value !== undefined && value !== null && typeof value !== 'object') return String(value);
  const found = value === undefined ? 'does not have' : value === null ? 'has null in' : 'has no text or number in';
  const where = location === undefined ? '' : `${formatLocation(location)}: `;
  throw new TrawlError(
    'TEMPLATE_INVALID',
    `${where}the row ${found} the column ${JSON.stringify(part.name)} of the passage template ` +
      `${JSON.stringify(template)}; it has ${columnNames(row)}. Change --passage-template, or fill the column.`,
    { details: { column: part.name, ...location } },
  );
}

function invalid(template: string, reason: string): TrawlError {
  return new TrawlError(
    'TEMPLATE_INVALID',
    `The passage template ${JSON.stringify(template)} is invalid: ${reason}. Expected text with column names in braces, ` +
      'such as {title} {text}.',
  );
}
