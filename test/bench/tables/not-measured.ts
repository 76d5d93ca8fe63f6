/** Tables with numbers that nobody measured: limits, status codes, offsets, and sizes computed by formulas. Page, then how the table's first line begins. */
export const NOT_MEASURED: readonly (readonly [page: string, header: string])[] = [
  ['bench/README.md', 'stage | measures'],
  ['bench/server.md', 'load | clients | what they do'],
  ['docs/building.md', 'exit code | meaning'],
  ['docs/building.md', 'what | bytes | 21,015,324 × 768'],
  ['docs/dialects.md', 'Original server | Port'],
  ['docs/gpu.md', 'weights | threads'],
  ['docs/http-api.md', 'Status | Body'],
  ['docs/http-api.md', 'Status | `error.code`'],
  ['docs/index-format.md', 'offset | bytes | field'],
  ['docs/operations.md', 'What | Limit | Option'],
  ['docs/replay.md', 'asked for | answer'],
  ['docs/reproduce.md', 'what | download | disk'],
  ['docs/reproduce.md', 'file | bytes'],
];
