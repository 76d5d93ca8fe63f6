import * as figure from '../report/figures.ts';
import { type GpuResult, gpuSpeeds } from './gpu-result.ts';
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
