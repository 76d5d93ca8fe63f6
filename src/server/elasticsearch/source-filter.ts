import { sourceOfRow } from '../../index/document-store/written-row.ts';
import { parseKeepingNumbers } from '../../index/passages/exact-numbers.ts';
import type { JsonBody, JsonNode } from './json-nodes.ts';
import { booleanOf, itemsOf, textOf } from './json-values.ts';
import { fitsPattern } from './query/dsl-query.ts';

/** Which members of a passage's row a reply has. Patterns are paths with dots, in which `*` stands for any characters. */
interface SourceFilter {
  readonly includes: readonly string[];
  readonly excludes: readonly string[];
}

/** `none`: the reply has no `_source`. */
export type SourceChoice = 'all' | 'none' | SourceFilter;

/** The value of `_source` in a body: a boolean, a pattern, a list of patterns, or `{includes, excludes}`. */
export function sourceChoiceOf(body: JsonBody, node: JsonNode): SourceChoice {
  const patterns = (value: JsonNode): string[] => itemsOf(value).map((item) => textOf(body, item, '[_source]'));
  if (node.type === 'boolean') return booleanOf(body, node, '[_source]') ? 'all' : 'none';
  if (node.type !== 'object') return filtered(patterns(node), []);
  let includes: readonly string[] = [];
  let excludes: readonly string[] = [];
  for (const [name, value] of node.members) {
    if (name === 'includes' || name === 'include') includes = patterns(value);
    else if (name === 'excludes' || name === 'exclude') excludes = patterns(value);
    else throw body.fault(value, `Unknown key for a field in [_source]: [${name.slice(0, 100)}]`);
  }
  return filtered(includes, excludes);
}

/** The parameters `_source`, `_source_includes` and `_source_excludes` of a URL; undefined if there are none. */
export function sourceChoiceFrom(parameters: Readonly<Record<string, string | undefined>>): SourceChoice | undefined {
  const { _source: source, _source_includes: included, _source_excludes: excluded } = parameters;
  const list = (text: string | undefined): string[] => (text === undefined || text === '' ? [] : text.split(','));
  if (source === 'false') return 'none';
  if (source === undefined && included === undefined && excluded === undefined) return undefined;
  const ofSource = source === 'true' ? [] : list(source);
  return filtered([...ofSource, ...list(included)], list(excluded));
}

function filtered(includes: readonly string[], excludes: readonly string[]): SourceChoice {
  return includes.length + excludes.length === 0 ? 'all' : { includes, excludes };
}

/** The JSON text of a passage's row with the chosen members; undefined if there is none to send. */
export function sourceOf(document: string, choice: SourceChoice): string | undefined {
  if (choice === 'none') return undefined;
  const source = sourceOfRow(document);
  if (choice === 'all') return source;
  const kept = keep(parseKeepingNumbers(source), '', choice);
  return JSON.stringify(kept ?? {});
}

/** A value without the members that the filter leaves out; undefined if nothing of it is left. */
function keep(value: unknown, path: string, filter: SourceFilter): unknown {
  if (filter.excludes.some((pattern) => coversPath(pattern, path))) return undefined;
  const isWhole = filter.includes.length === 0 || filter.includes.some((pattern) => coversPath(pattern, path));
  if (typeof value !== 'object' || value === null || isVerbatim(value)) return isWhole ? value : undefined;
  if (Array.isArray(value)) {
    const items = value.map((item) => keep(item, path, filter)).filter((item) => item !== undefined);
    return items.length > 0 || (isWhole && value.length === 0) ? items : undefined;
  }
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const kept = keep(member, path === '' ? name : `${path}.${name}`, filter);
    return kept === undefined ? [] : [[name, kept]];
  });
  const isEmpty = members.length === 0;
  return isEmpty && !(isWhole && Object.keys(value).length === 0) && path !== ''
    ? undefined
    : Object.fromEntries(members);
}

/** Whether a pattern names a path or an object that has it. */
function coversPath(pattern: string, path: string): boolean {
  if (path === '') return false;
  return fitsPattern(pattern, path) || fitsPattern(`${pattern}.*`, path);
}

/** Whether a value is a number that keeps its text. */
function isVerbatim(value: object): boolean {
  return Object.getPrototypeOf(value) !== Object.prototype && !Array.isArray(value);
}
