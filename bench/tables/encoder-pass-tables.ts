import * as figure from '../report/figures.ts';
import { type EncoderPassResult, PASSES } from './encoder-pass-result.ts';
import { rule, type TableMaker } from './table-maker.ts';

/** Processor time of a text in each pass; for int8 also how many times as fast as its graph it is. */
export const encoderPass: TableMaker<EncoderPassResult> = ({ passes }) => {
  const cases = passes.filter(({ pass }) => pass === PASSES[0]);
  return [
    ['shape', 'tokens', ...PASSES],
    rule(2 + PASSES.length),
    ...cases.map(({ shape, tokens }) => [
      shape,
      String(tokens),
      ...PASSES.map((pass) => {
        const found = passes.find((one) => one.shape === shape && one.tokens === tokens && one.pass === pass)!;
        const gain = pass === 'int8' ? ` (${found.ratioToInt8Graph.toFixed(2)} ×)` : '';
        return `${figure.ms(found.processorMs)}${gain}`;
      }),
    ]),
  ];
};

export const encoderCosines: TableMaker<EncoderPassResult> = ({ cosines }) => [
  ['vectors of all-MiniLM-L6-v2', 'mean cosine', 'smallest'],
  rule(3),
  ...cosines.map(({ pass, mean, least }) => [pass, mean.toFixed(5), least.toFixed(5)]),
];

export const loneQuery: TableMaker<EncoderPassResult> = ({ divided }) => [
  ['shape', 'pass', 'one thread, p50', 'two threads, p50', 'ratio'],
  rule(5, 2),
  ...divided.map(({ shape, pass, oneMs, twoMs, ratio }) => [
    shape,
    pass,
    figure.ms(oneMs),
    figure.ms(twoMs),
    ratio.toFixed(2),
  ]),
];
