import { isObject } from '../../base/objects.ts';
import {
  ORIGIN_FIELDS,
  type OriginFault,
  type OriginField,
  type QueryOrigin,
  readOriginValue,
} from './query-origin.ts';

type Texts = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The places where a request says where its queries come from. If several give a field, the body counts, then the header, baggage and URL. */
export interface OriginSources {
  /** The field `record` of the body: for each field one value, or a list with one value (or null) per query. */
  readonly body: unknown;
  /** Header fields in lower case: `x-trawl-trajectory` and the like, `traceparent`, and `baggage` with `trawl-trajectory` and the like. */
  readonly headers: Texts;
  /** Parameters of the URL: `trawl-policy` and the like. */
  readonly parameters: Texts;
}

/** A value, or several of one list, that cannot be recorded. */
export interface IgnoredValue {
  /** Such as `x-trawl-turn`, `record.turn` or, for the first of a list, `record.turn.3`. */
  readonly name: string;
  readonly fault: OriginFault;
  readonly reason: string;
  readonly count: number;
}

export interface ReadOrigins {
  /** One per query. */
  readonly origins: readonly QueryOrigin[];
  readonly ignored: readonly IgnoredValue[];
}

const FIELDS = Object.keys(ORIGIN_FIELDS) as OriginField[];

/** The name of a field in headers and URLs: `question-id`. */
function dashed(field: OriginField): string {
  return field.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`);
}

/** The headers that say where queries come from. */
export const ORIGIN_HEADERS: readonly string[] = FIELDS.map((field) => `x-trawl-${dashed(field)}`);

/** Reads where the queries of a request come from. A value that cannot be used is left out and listed; nothing is refused. */
export function readOrigins({ body, headers, parameters }: OriginSources, queries: number): ReadOrigins {
  const ignored: IgnoredValue[] = [];
  const ofRequest: Record<string, unknown> = { ...readTraceparent(headers.traceparent) };
  const baggage = readBaggage(headers.baggage);
  for (const field of FIELDS) {
    const name = dashed(field);
    for (const [place, text] of [
      [`URL.trawl-${name}`, last(parameters[`trawl-${name}`])],
      [`baggage.trawl-${name}`, baggage.get(`trawl-${name}`)],
      [`x-trawl-${name}`, headerText(headers[`x-trawl-${name}`])],
    ] as const) {
      if (text === undefined) continue;
      const read = readOriginValue(field, text);
      if (read.ok) add(ofRequest, field, read.value);
      else ignored.push(ignoredValue(place, read.fault, read.reason));
    }
  }
  const inBody = readBody(body, queries);
  const origins = Array.from({ length: queries }, (_, i): QueryOrigin => {
    const origin = { ...ofRequest };
    for (const [field, valueFor] of inBody.values) {
      const value = valueFor(i);
      if (value !== undefined) add(origin, field, value);
    }
    return origin;
  });
  return { origins, ignored: [...ignored, ...inBody.ignored] };
}

/** Tags of several places are joined; of any other field the later value counts. */
function add(origin: Record<string, unknown>, field: OriginField, value: unknown): void {
  origin[field] = field === 'tags' ? { ...(origin.tags as object | undefined), ...(value as object) } : value;
}

type ValueFor = (query: number) => unknown;

export function readBody(
  body: unknown,
  queries: number,
): { readonly values: readonly (readonly [OriginField, ValueFor])[]; readonly ignored: readonly IgnoredValue[] } {
  const values: (readonly [OriginField, ValueFor])[] = [];
  const ignored: IgnoredValue[] = [];
  if (body === undefined || body === null) return { values, ignored };
  if (!isObject(body)) return { values, ignored: [ignoredValue('record', 'type', 'expected an object')] };
  for (const [name, value] of Object.entries(body)) {
    if (value === null) continue;
    const place = `record.${name.slice(0, 100)}`;
    const field = FIELDS.find((each) => each === name || dashed(each).replace('-', '_') === name);
    if (field === undefined) {
      ignored.push(ignoredValue(place, 'unknown', `expected one of ${FIELDS.join(', ')}`));
    } else if (!Array.isArray(value)) {
      const read = readOriginValue(field, value);
      if (read.ok) values.push([field, () => read.value]);
      else ignored.push(ignoredValue(place, read.fault, read.reason));
    } else if (value.length === queries) {
      const list = readList(field, value, place);
      values.push([field, (i) => list.values[i]]);
      ignored.push(...list.ignored);
    } else {
      const reason = `expected one value per query, got ${value.length} for ${queries} queries`;
      ignored.push(ignoredValue(place, 'length', reason));
    }
  }
  return { values, ignored };
}

function ignoredValue(name: string, fault: OriginFault, reason: string): IgnoredValue {
  return { name, fault, reason, count: 1 };
}

/** The values of a list; undefined for null and for a value that cannot be used, of which the first is named. */
function readList(field: OriginField, list: readonly unknown[], place: string) {
  const ignored: IgnoredValue[] = [];
  const values = list.map((value, i) => {
    if (value === null) return undefined;
    const read = readOriginValue(field, value);
    if (read.ok) return read.value;
    const first = ignored[0];
    ignored[0] = first ? { ...first, count: first.count + 1 } : ignoredValue(`${place}.${i}`, read.fault, read.reason);
    return undefined;
  });
  return { values, ignored };
}

function last(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.at(-1);
}

/** Header values are Latin-1: other characters are percent-encoded. A value that cannot be decoded is taken as it is. */
function headerText(value: string | readonly string[] | undefined): string | undefined {
  const text = last(value);
  if (text?.includes('%') !== true) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `version-traceid-parentid-flags`; later versions may have more after the flags (W3C Trace Context, 3.2.2). */
const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(-.*)?$/;

/**
 * Reads a header `traceparent`: trace and span in lower-case hex. Undefined for a header that the standard tells receivers to ignore.
 *
 * @internal
 */
export function readTraceparent(
  header: string | readonly string[] | undefined,
): Pick<QueryOrigin, 'traceId' | 'spanId'> | undefined {
  const match = typeof header === 'string' ? TRACEPARENT.exec(header.trim()) : null;
  if (match === null) return undefined;
  const [, version, traceId, spanId, more] = match;
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId!) || /^0+$/.test(spanId!)) return undefined;
  return { traceId, spanId };
}

/** Limits of the standard on what must be passed on. */
const MAX_ENTRIES = 64;
const MAX_CHARACTERS = 8192;

/**
 * Reads a header `baggage` (W3C Baggage): `name=value;property,name=value`, values in percent encoding. Properties and entries that cannot
 * be read are left out.
 *
 * @internal
 */
export function readBaggage(header: string | readonly string[] | undefined): ReadonlyMap<string, string> {
  const entries = new Map<string, string>();
  const text = header === undefined || typeof header === 'string' ? (header ?? '') : header.join(',');
  if (text.length > MAX_CHARACTERS) return entries;
  for (const member of text.split(',').slice(0, MAX_ENTRIES)) {
    const match = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*=\s*([^;]*)/.exec(member);
    if (match === null) continue;
    try {
      entries.set(match[1]!, decodeURIComponent(match[2]!.trim()));
    } catch {
      // Not percent encoding.
    }
  }
  return entries;
}
