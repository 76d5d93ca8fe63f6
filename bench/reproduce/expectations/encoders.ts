import type { BenchEmbedResult } from '../../embed/bench-embed.ts';
import type { IndexRecord } from '../../index/index-record.ts';
import type { BenchProductsResult } from '../../products/bench-products.ts';
import type { EncoderPassResult } from '../../tables/encoder-pass-result.ts';
import type { FamiliesResult } from '../../tables/families-result.ts';
import { type GpuResult, gpuSpeeds } from '../../tables/gpu-result.ts';
import type { PrepareResult } from '../../tables/prepare-result.ts';
import { type Expectation, RATIO } from '../expectation.ts';

export function encoderExpectations({ records }: Pick<BenchEmbedResult, 'records'>): Expectation[] {
  return records.flatMap(({ engine, precision, ratioToBaseline }): Expectation[] =>
    engine === 'trawl' && ratioToBaseline !== null
      ? [{ name: `encoder, ${precision}: × the baseline`, value: ratioToBaseline, tolerance: RATIO }]
      : [],
  );
}

export function familiesExpectations({ rows }: FamiliesResult): Expectation[] {
  return rows.flatMap(({ family, precision, ratioToBaseline, queryRatioToBaseline }) => {
    if (ratioToBaseline === null || queryRatioToBaseline === null) return [];
    const name = `${family}, ${precision}`;
    return [
      { name: `${name}: passages, × sentence-transformers`, value: ratioToBaseline, tolerance: RATIO },
      { name: `${name}: single queries, × sentence-transformers`, value: queryRatioToBaseline, tolerance: RATIO },
    ];
  });
}

/** The time of each engine divided by Trawl's. */
export function gpuExpectations(result: GpuResult): Expectation[] {
  return gpuSpeeds(result).flatMap(({ model, tokens, ratio }) =>
    ratio === null
      ? []
      : [{ name: `${model}, ${tokens} tokens: texts, × sentence-transformers`, value: ratio, tolerance: RATIO }],
  );
}

export function productsExpectations({ records }: BenchProductsResult): Expectation[] {
  return records.flatMap(({ kind, hidden, tokens, use, ratioToFloat32 }) =>
    use !== 'apart' || ratioToFloat32 === null
      ? []
      : [{ name: `${kind}, ${hidden} × ${tokens} tokens: × float32`, value: ratioToFloat32, tolerance: RATIO }],
  );
}

export function encoderPassExpectations({ passes, cosines, divided }: EncoderPassResult): Expectation[] {
  return [
    ...passes.map(({ shape, tokens, pass, ratioToInt8Graph }) => ({
      name: `${shape}, ${tokens} tokens, ${pass}: × int8 graph`,
      value: ratioToInt8Graph,
      tolerance: RATIO,
    })),
    ...cosines.map(({ pass, mean }) => ({
      name: `cosine to float32, ${pass}`,
      value: mean,
      tolerance: { difference: 0.001 },
    })),
    ...divided.map(({ shape, pass, ratio }) => ({
      name: `${shape}, ${pass}: two threads / one`,
      value: ratio,
      tolerance: { factor: 2 },
    })),
  ];
}

export function buildExpectations({ records }: { readonly records: readonly IndexRecord[] }): Expectation[] {
  return records.flatMap(({ engine: engineAndVersions, peakMemoryBytes, ratioToEncoding }) => {
    const engine = engineAndVersions.split(':', 1)[0]!;
    return [
      { name: `build, ${engine}: most memory`, value: peakMemoryBytes, tolerance: RATIO },
      ...(ratioToEncoding === null
        ? []
        : [{ name: `build, ${engine}: time / encoder alone`, value: ratioToEncoding, tolerance: { factor: 1.3 } }]),
    ];
  });
}

export function prepareExpectations({ rows }: PrepareResult): Expectation[] {
  return rows.map(({ program, rule, output, threads, passages }) => ({
    name: `${program}, ${rule}, ${output}, ${threads} threads: passages`,
    value: passages,
    tolerance: { difference: 0 },
  }));
}
