/** What every line of `--record` has; tests replace what they are about. */
export const RECORD_HEAD = {
  time: '2026-11-23T01:02:03.456Z',
  requestId: 'r',
  dialect: 'search-r1',
  index: 'wiki',
  generation: 'g1',
  place: 0,
} as const;

/** A line of `--record` for a passage that a client opened. */
export function openingLine(opened: string, more: object = {}): string {
  return `${JSON.stringify({ ...RECORD_HEAD, opened, rows: [4], ids: ['a'], ...more })}\n`;
}

/** A line of `--record` with two hits. */
export function recordLine(query: string, more: object = {}): string {
  return `${JSON.stringify({ ...RECORD_HEAD, query, k: 2, rows: [4, 1], scores: [0.5, 0.25], ids: ['a', 7], ...more })}\n`;
}
