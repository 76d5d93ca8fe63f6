import type { StageResults } from '../all/all-result.ts';
import * as figure from './figures.ts';
import type { Markup } from './markup.ts';
import { section, table } from './report-parts.ts';

/** Passages and queries embedded. */
export function encoderSection({ records, model, environment }: StageResults['embed']): Markup {
  const product =
    environment.matmulGflopPerS === null
      ? ''
      : ` One float32 product of 1024 × 1024 matrices reached ${environment.matmulGflopPerS.toFixed(0)} GFLOP/s on the same threads.`;
  return section(
    'Encoder',
    `${model}, ${figure.count(records[0]?.texts ?? 0)} passages, then single queries.${product}`,
    table(
      ['engine', 'passages/s', 'tokens/s', 'GFLOP/s', 'query p50', 'query p99', 'memory', 'speed, baseline = 1'],
      records.map((record) => [
        `${record.engine} ${record.precision}`,
        figure.rate(record.textsPerS),
        figure.count(record.tokensPerS),
        record.gflopPerS === null ? '' : record.gflopPerS.toFixed(0),
        figure.ms(record.queryP50Ms),
        figure.ms(record.queryP99Ms),
        figure.bytes(record.residentBytes),
        record.ratioToBaseline === null || record.engine !== 'trawl' ? '' : figure.times(record.ratioToBaseline),
      ]),
    ),
  );
}

/** Building an index without the time of an encoder. */
export function buildSection({ records }: StageResults['index']): Markup {
  return section(
    'Building an index',
    'Passages of 100 words with an encoder that takes almost no time: reading, storing, search codes and prefilter.',
    table(
      ['passages', 'seconds', 'passages/s', 'index', 'peak memory', 'writing as many bytes'],
      records.map((record) => [
        figure.count(record.rows),
        record.seconds.toFixed(1),
        figure.count(record.passagesPerS),
        figure.bytes(record.indexBytes),
        figure.bytes(record.peakMemoryBytes),
        record.diskSeconds === null ? '' : `${record.diskSeconds.toFixed(1)} s`,
      ]),
    ),
  );
}
