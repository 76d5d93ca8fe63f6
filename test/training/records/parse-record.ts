import { type ParsedRecord, parseLine } from '../../../training/records/recorded-query.ts';

/** Parses the line of a query; that of an opening is refused. */
export function parseRecord(text: string): ParsedRecord {
  const parsed = parseLine(text);
  return 'opening' in parsed ? { ok: false, reason: 'it is that of an opening' } : parsed;
}
