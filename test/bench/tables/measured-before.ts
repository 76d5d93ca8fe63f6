/**
 * Tables of figures without a committed JSON: they were measured before `bench/results` existed. Page, then how the table's first line
 * begins. To be shortened: measure again, commit the JSON, and mark the table (CONTRIBUTING.md). Nothing is to be added.
 */
export const MEASURED_BEFORE: readonly (readonly [page: string, header: string])[] = [
  ['README.md', 'queries at once | Trawl | FAISS'],
  ['README.md', 'load | Trawl | that server'],
  ['README.md', 'recall@10 | BM25 (0.9, 0.4)'],
  ['bench/README.md', 'queries | Trawl, ms | M dots/s'],
  ['bench/README.md', 'queries | ms, codes alone'],
  ['bench/README.md', ' | the processor, 2 cores'],
  ['bench/README.md', 'vectors | rows × dimension'],
  ['bench/README.md', 'rows | codes | 1 query'],
  ['bench/README.md', 'way | seconds | queries/s'],
  ['bench/README.md', 'engine | texts/s, fastest (median)'],
  ['bench/README.md', 'product | 384, 128 tokens'],
  ['bench/README.md', ' | 128 tokens, ms | × float32'],
  ['bench/README.md', 'load | Trawl | baseline'],
  ['bench/README.md', 'queries | k | threads | Trawl, queries/s'],
  ['bench/README.md', 'queries | k | 79,482 passages'],
  ['bench/README.md', 'way | before and after'],
  ['bench/README.md', 'rows that pass | dense, 1 query'],
  ['docs/building.md', 'event | tasks started'],
  ['docs/building.md', 'recall@1, 5, 10 | options'],
  ['docs/building.md', 'what | figure'],
  ['docs/building.md', ' | Trawl | as FlashRAG'],
  ['docs/building.md', 'queries | threads | p50 ms'],
  ['docs/building.md', ' | mapped files in memory'],
  ['docs/corpora.md', 'rule, output | threads'],
  ['docs/filters.md', 'rows that pass | filter'],
  ['docs/models.md', 'CPU time per passage'],
  ['docs/models.md', 'int8: matrix product'],
  ['docs/modes.md', ' | hotpot, MiniLM'],
  ['docs/modes.md', ' | passages | questions | recall@10'],
  ['docs/operations.md', 'Attack | Number'],
  ['docs/operations.md', 'Trial | Answers'],
  ['docs/training.md', ' | @1 | @5 | @10'],
  ['docs/training.md', 'set | depth | 0.2 %'],
  ['docs/training.md', 'step | seconds'],
];

/** Tables with numbers that nobody measured: limits, status codes, offsets, and sizes computed by formulas. */
export const NOT_MEASURED: readonly (readonly [page: string, header: string])[] = [
  ['bench/README.md', 'stage | measures'],
  ['bench/README.md', 'load | clients | what they do'],
  ['docs/building.md', 'exit code | meaning'],
  ['docs/building.md', 'what | bytes | 21,015,324 × 768'],
  ['docs/http-api.md', 'Status | Body'],
  ['docs/http-api.md', 'Status | `error.code`'],
  ['docs/index-format.md', 'offset | bytes | field'],
  ['docs/operations.md', 'What | Limit | Option'],
  ['docs/replay.md', 'asked for | answer'],
  ['docs/reproduce.md', 'what | download | disk'],
];
