/**
 * Paths into the JSON of a result: keys joined by points, with filters of lists behind them. `records[engine=trawl][queries=1].medianMs`
 * is the time of the record with both values.
 *
 * | filter | keeps the elements |
 * | --- | --- |
 * | `[key=text]`, `[key!=text]` | whose value, as text, equals it or does not; several texts are divided by `\|` |
 * | `[key~text]`, `[key!~text]` | whose value contains it or does not |
 * | `[key]` | that have a value |
 *
 * `$name` in a filter is the value of that key in the line, and a path that begins with `/` starts at the whole result in place of the line.
 */
const PART = /\.?([^.[\]]+)|\[([^\]=~!]+)(?:(!?[=~])([^\]]*))?\]/gy;

/** What a path is read from. */
export interface PathScope {
  readonly line: unknown;
  readonly result: unknown;
}

/**
 * The value at a path; undefined if there is none. Filters that leave one element give that element, others the list.
 *
 * @throws RangeError if the path cannot be read.
 */
export function valueAt(path: string, { line, result }: PathScope): unknown {
  const whole = path.startsWith('/');
  let value: unknown = whole ? result : line;
  let filtered: readonly unknown[] | undefined;
  let end = whole ? 1 : 0;
  PART.lastIndex = end;
  for (const match of path.matchAll(PART)) {
    end = match.index + match[0].length;
    const [, key, name, operator, text] = match;
    if (key !== undefined) {
      value = fieldOf(filtered?.length === 1 ? filtered[0] : value, key);
      filtered = undefined;
      continue;
    }
    const wanted = text?.replace(/\$(\w+)/g, (_, field: string) => String(fieldOf(line, field)));
    filtered = (filtered ?? listOf(value)).filter((element) => passes(fieldOf(element, name!), operator, wanted));
    value = filtered;
  }
  if (end !== path.length) throw new RangeError(`${path}: expected keys joined by points, and filters [key=value]`);
  if (filtered === undefined) return value;
  return filtered.length < 2 ? filtered[0] : filtered;
}

/** The elements of the list at a path, or the one that its filters leave. */
export function elementsAt(path: string, scope: PathScope): readonly unknown[] {
  return listOf(valueAt(path, scope));
}

/**
 * The number at a path, or a quotient or product of a path and a path or number: `ms / 1000`, `share * 100`. Undefined if there is none.
 * True and false are 1 and 0.
 */
export function numberAt(expression: string, scope: PathScope): number | undefined {
  const [first, operator, second] = expression.split(/ ([/*]) /);
  const read = (operand: string): number | undefined => {
    const value = /^[\d.]+(e\d+)?$/.test(operand) ? Number(operand) : valueAt(operand, scope);
    return typeof value === 'boolean' ? Number(value) : typeof value === 'number' ? value : undefined;
  };
  const left = read(first!);
  if (operator === undefined || left === undefined) return left;
  const right = read(second!);
  return right === undefined ? undefined : operator === '/' ? left / right : left * right;
}

function passes(value: unknown, operator: string | undefined, text: string | undefined): boolean {
  if (operator === undefined) return value !== undefined && value !== null;
  const found = operator.endsWith('=') ? text!.split('|').includes(String(value)) : String(value).includes(text!);
  return found !== operator.startsWith('!');
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
}
