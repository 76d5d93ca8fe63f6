import type { BenchEmbedResult } from '../../embed/bench-embed.ts';
import type { IndexRecord } from '../../index/index-record.ts';
import type { BenchProductsResult } from '../../products/bench-products.ts';
import type { EncoderPassResult } from '../../tables/encoder-pass-result.ts';
import type { FamiliesResult } from '../../tables/families-result.ts';
import type { GpuResult } from '../../tables/gpu-result.ts';
import type { PrepareResult } from '../../tables/prepare-result.ts';
import { benchBuild } from '../build.ts';
import { benchPrecisions } from '../embed-precisions.ts';
import { measureFamilies } from '../encoder-families.ts';
import { timeEncoderPasses } from '../encoder-pass.ts';
import {
  buildExpectations,
  encoderExpectations,
  encoderPassExpectations,
  familiesExpectations,
  gpuExpectations,
  prepareExpectations,
  productsExpectations,
} from '../expectations/encoders.ts';
import { testGpu } from '../gpu.ts';
import { benchShapes } from '../matrix-products.ts';
import { timePrepare } from '../prepare-speed.ts';
import type { Reproduction } from '../reproduction.ts';

export const ENCODERS: readonly Reproduction[] = [
  {
    name: 'embed-precisions',
    file: 'bench/results/embed-precisions.json',
    about: 'speed of all-MiniLM-L6-v2 in float32, bfloat16 and int8 beside sentence-transformers',
    time: '3 minutes',
    run: benchPrecisions,
    expectations: (result) => encoderExpectations(result as BenchEmbedResult),
  },
  {
    name: 'encoder-pass',
    file: 'bench/results/encoder-pass.json',
    about: "BERT encoders in onnxruntime's graphs and in the engine, and single queries divided among two threads",
    time: '5 minutes',
    run: timeEncoderPasses,
    expectations: (result) => encoderPassExpectations(result as EncoderPassResult),
  },
  {
    name: 'products',
    file: 'bench/results/products.json',
    about: "matrix products of an encoder with each of onnxruntime's operators",
    time: 'a minute',
    run: benchShapes,
    expectations: (result) => productsExpectations(result as BenchProductsResult),
  },
  {
    name: 'families',
    file: 'bench/results/families.json',
    about: 'speed of each encoder family in float32 and int8 beside sentence-transformers, random weights, few layers',
    time: '7 minutes',
    run: async ({ file, scratch, signal }) => measureFamilies(file, scratch, signal),
    expectations: (result) => familiesExpectations(result as FamiliesResult),
  },
  {
    name: 'families-avx512',
    file: 'bench/results/families-avx512.json',
    about: 'the same on a processor with AVX-512 VNNI',
    time: '4 minutes',
    run: async ({ file, scratch, signal }) => measureFamilies(file, scratch, signal),
    expectations: (result) => familiesExpectations(result as FamiliesResult),
  },
  {
    name: 'gpu',
    file: 'bench/results/gpu.json',
    about: 'embedding in float16 on an NVIDIA GPU beside the CPU and sentence-transformers, random weights',
    time: '4 minutes on a machine with a GPU',
    run: async ({ file, scratch, signal }) => testGpu(file, scratch, signal),
    expectations: (result) => gpuExpectations(result as GpuResult),
  },
  {
    name: 'build',
    file: 'bench/results/build.json',
    about: 'an index of 2,000 passages with all-MiniLM-L6-v2, beside one as FlashRAG builds it',
    time: '4 minutes',
    run: benchBuild,
    expectations: (result) => buildExpectations(result as { readonly records: readonly IndexRecord[] }),
  },
  {
    name: 'prepare',
    file: 'bench/results/prepare.json',
    about: '`trawl prepare` over 12,870 pages of Wikipedia by rule and output, beside a Python program',
    time: '3 minutes',
    run: timePrepare,
    expectations: (result) => prepareExpectations(result as PrepareResult),
  },
];
