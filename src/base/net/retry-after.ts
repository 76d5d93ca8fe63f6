/**
 * The pause that a reply asks for, in milliseconds: `retry-after-ms`, else `Retry-After` in seconds or as a date (RFC 9110, section
 * 10.2.3). Undefined if the reply names none, or none that can be read.
 */
export function retryAfterMs(headers: Pick<Headers, 'get'>, now = Date.now()): number | undefined {
  const milliseconds = headers.get('retry-after-ms')?.trim();
  if (milliseconds !== undefined && /^\d{1,9}(\.\d+)?$/.test(milliseconds)) return Number(milliseconds);
  const text = headers.get('retry-after')?.trim();
  if (text === undefined) return undefined;
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Number(text) * 1000;
  // Date.parse also accepts texts that are not HTTP dates, such as "-1".
  const date = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
