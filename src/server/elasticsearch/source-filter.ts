import { sourceOfRow } from '../../index/document-store/written-row.ts';
import { parseKeepingNumbers } from '../../index/passages/exact-numbers.ts';
import type { JsonNode } from './json-node.ts';
import { fitsPattern } from './query/dsl-query.ts';

/** Which members of a passage's row a reply has. Patterns are paths with dots, in which `*` stands for any characters. */
interface SourceFilter {
  readonly includes: readonly string[];
  readonly excludes: readonly string[];
}

/** `none`: the reply has no `_source`. */
export type SourceChoice = 'all' | 'none' | SourceFilter;

/** Parameters of a URL that choose members. */
export const SOURCE_PARAMETERS = ['_source', '_source_excludes', '_source_includes'] as const;

/** The value of `_source` in a body: a boolean, a pattern, a list of patterns, or `{includes, excludes}`. */
export function readSourceChoice(node: JsonNode): SourceChoice {
  const patterns = (value: JsonNode): string[] => value.items.map((item) => item.text('[_source]'));
  if (typeof node.value === 'boolean') return node.value ? 'all' : 'none';
  if (node.members === undefined) return filterOrAll(patterns(node), []);
  let includes: readonly string[] = [];
  let excludes: readonly string[] = [];
  for (const [name, value] of node.members) {
    if (name === 'includes' || name === 'include') includes = patterns(value);
    else if (name === 'excludes' || name === 'exclude') excludes = patterns(value);
    else throw value.fault(`Unknown key for a field in [_source]: [${name.slice(0, 100)}]`);
  }
  return filterOrAll(includes, excludes);
}

/** The choice in the parameters of a URL; undefined if there is none. */
export function parseSourceChoice(parameters: Readonly<Record<string, string | undefined>>): SourceChoice | undefined {
  const { _source: source, _source_includes: included, _source_excludes: excluded } = parameters;
  const patterns = (text = ''): string[] => (text === '' ? [] : text.split(','));
  if (source === 'false') return 'none';
  if (source === undefined && included === undefined && excluded === undefined) return undefined;
  return filterOrAll([...patterns(source === 'true' ? '' : source), ...patterns(included)], patterns(excluded));
}

function filterOrAll(includes: readonly string[], excludes: readonly string[]): SourceChoice {
  return includes.length + excludes.length === 0 ? 'all' : { includes, excludes };
}

/** The JSON text of a passage's row with the chosen members; undefined if there is none to send. */
export function sourceJson(document: string, choice: SourceChoice): string | undefined {
  if (choice === 'none') return undefined;
  const source = sourceOfRow(document);
  if (choice === 'all') return source;
  return JSON.stringify(filtered(parseKeepingNumbers(source), '', choice) ?? {});
}

/** A value without the members that the filter leaves out; undefined if nothing of it is left. */
function filtered(value: unknown, path: string, filter: SourceFilter): unknown {
  if (filter.excludes.some((pattern) => coversPath(pattern, path))) return undefined;
  const isWhole = filter.includes.length === 0 || filter.includes.some((pattern) => coversPath(pattern, path));
  if (Array.isArray(value)) {
    const items = value.map((item) => filtered(item, path, filter)).filter((item) => item !== undefined);
    return items.length > 0 || (isWhole && value.length === 0) ? items : undefined;
  }
  // A number that keeps its text has a prototype of its own.
  const isObject = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  if (!isObject) return isWhole ? value : undefined;
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const part = filtered(member, path === '' ? name : `${path}.${name}`, filter);
    return part === undefined ? [] : [[name, part]];
  });
  const isKept = members.length > 0 || path === '' || (isWhole && Object.keys(value).length === 0);
  return isKept ? Object.fromEntries(members) : undefined;
}

/** Whether a pattern names a path or an object that has it. */
function coversPath(pattern: string, path: string): boolean {
  return path !== '' && (fitsPattern(pattern, path) || fitsPattern(`${pattern}.*`, path));
}
