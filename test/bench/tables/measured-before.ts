/**
 * Tables of figures without a committed JSON: they were measured before `bench/results` existed. Page, then how the table's first line
 * begins. To be shortened: measure again, commit the JSON, and mark the table (CONTRIBUTING.md).
 */
export const MEASURED_BEFORE: readonly (readonly [page: string, header: string])[] = [
  ['bench/README.md', 'queries | ms, codes alone'],
  ['bench/README.md', ' | the processor, 2 cores'],
  ['bench/README.md', 'digits | sums before'],
  ['bench/README.md', 'queries | AMX, codes'],
  ['bench/README.md', 'vectors | rows × dimension'],
  ['bench/README.md', 'way | seconds | queries/s'],
  ['bench/README.md', 'product | 384, 128 tokens'],
  ['bench/README.md', ' | 128 tokens, ms | × float32'],
  ['bench/README.md', 'load | Trawl | baseline'],
  ['bench/README.md', 'queries | k | threads | Trawl, queries/s'],
  ['bench/README.md', 'rows that pass | dense, 1 query'],
  ['bench/README.md', 'pass | one thread, p50 | two threads, p50'],
  ['bench/README.md', 'shape, random ids | tokens | float32 graph, ms'],
  ['bench/README.md', 'vectors of all-MiniLM-L6-v2 | mean cosine'],
  ['bench/README.md', 'speed with 128 tokens, one thread | MiniLM'],
  ['docs/building.md', 'event | tasks started'],
  ['docs/cluster.md', 'rows | stored s'],
  ['docs/building.md', 'recall@1, 5, 10 | options'],
  ['docs/building.md', 'what | figure'],
  ['docs/building.md', ' | Trawl | as FlashRAG'],
  ['docs/building.md', 'queries | threads | p50 ms'],
  ['docs/corpora.md', 'rule, output | threads'],
  ['docs/models.md', 'int8: matrix product'],
  ['docs/operations.md', 'Trial | Answers'],
  ['docs/iteration.md', ' | @1 | @5 | @10'],
  ['docs/iteration.md', 'set | depth | 0.2 %'],
  ['docs/iteration.md', 'step | seconds'],
];

/** Tables with numbers that nobody measured: limits, status codes, offsets, and sizes computed by formulas. */
export const NOT_MEASURED: readonly (readonly [page: string, header: string])[] = [
  ['bench/README.md', 'stage | measures'],
  ['bench/README.md', 'load | clients | what they do'],
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
