import { parseLine, type RecordedQuery } from '../../../training/records/recorded-query.ts';

/** Parses the line of a query, and refuses an opening. */
export function parseRecord(text: string): { ok: true; query: RecordedQuery } | { ok: false; reason: string } {
  const parsed = parseLine(text);
  if (typeof parsed === 'string') return { ok: false, reason: parsed };
  return 'query' in parsed ? { ok: true, query: parsed.query } : { ok: false, reason: 'an opening' };
}
