/** The ids of a request's place in a trace, in lower-case hex. */
export interface TraceIds {
  readonly traceId: string;
  readonly spanId: string;
}

/** `version-traceid-parentid-flags`; later versions may have more after the flags (W3C Trace Context, 3.2.2). */
const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(-.*)?$/;

/** Reads a header `traceparent`. Undefined for a header that the standard tells receivers to ignore. */
export function readTraceparent(header: string | readonly string[] | undefined): TraceIds | undefined {
  const match = typeof header === 'string' ? TRACEPARENT.exec(header.trim()) : null;
  if (match === null) return undefined;
  const [, version, traceId, spanId, more] = match;
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId!) || /^0+$/.test(spanId!)) return undefined;
  return { traceId: traceId!, spanId: spanId! };
}

/** Limits of the standard on what must be passed on. */
const MAX_ENTRIES = 64;
const MAX_CHARACTERS = 8192;

/**
 * Reads a header `baggage` (W3C Baggage): `name=value;property,name=value`, values in percent encoding. Entries that cannot be read, and
 * properties, are left out.
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
