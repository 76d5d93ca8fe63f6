import * as figure from '../report/figures.ts';
import { type GpuResult, gpuSpeeds } from './gpu-result.ts';
import type { GpuSearchResult } from './gpu-search-result.ts';
import { rule, type TableMaker } from './table-maker.ts';

/** Texts a second by model and length: a column for each size of a batch, then the best of both programs. */
export const gpuThroughput: TableMaker<GpuResult> = (result) => {
  const speeds = gpuSpeeds(result);
  const batches = Object.keys(speeds[0]?.trawl ?? {}).map(Number);
  return [
    [
      'model',
      'tokens of a text',
      ...batches.map((tokens) => `Trawl, batches of ${figure.count(tokens)} tokens`),
      'sentence-transformers, best',
      'Trawl is faster by',
    ],
    rule(batches.length + 4),
    ...speeds.map(({ model, tokens, trawl, torch, ratio }) => [
      model.replace('-shape', ''),
      String(tokens),
      ...batches.map((batch) => `${figure.count(trawl[batch]!)} texts/s`),
      torch === null ? '' : `${figure.count(Math.max(...Object.values(torch)))} texts/s`,
      ratio === null ? '' : figure.times(ratio),
    ]),
  ];
};

/** Whole searches by queries at once: Trawl on the GPU and on the CPU, and torch, by the type of its rows. */
export const gpuSearch: TableMaker<GpuSearchResult> = ({ searches, baselines, threads }) => {
  const types = ['float16', 'float32'];
  const float16 = baselines.filter(({ type }) => type === 'float16');
  const recall = new Map(float16.map((line) => [line.queries, line.recall]));
  return [
    [
      'queries at once',
      'Trawl on the GPU',
      ...types.flatMap((type) => [`torch, ${type}`, 'takes']),
      'recall of torch in float16',
      `Trawl on ${threads} cores`,
      'takes',
    ],
    rule(9, 0),
    ...searches.map(({ queries, ms, cpuMs }) => [
      figure.count(queries),
      figure.ms(ms),
      ...types.flatMap((type) => {
        const found = baselines.find((line) => line.type === type && line.queries === queries);
        return found === undefined ? ['', ''] : [figure.ms(found.ms), figure.times(found.ms / ms)];
      }),
      recall.has(queries) ? figure.share(recall.get(queries)!) : '',
      figure.ms(cpuMs),
      figure.times(cpuMs / ms),
    ]),
  ];
};
