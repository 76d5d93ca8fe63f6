import { join } from 'node:path';
import type { BenchModesResult } from '../../modes/bench-modes.ts';
import { SHARED } from '../../serve/serve-index.ts';
import type { EvalResult } from '../../tables/eval-result.ts';
import type { PrecisionResult } from '../../tables/precision-result.ts';
import type { SystemsResult } from '../../tables/systems-result.ts';
import type { TriageErrorsResult } from '../../tables/triage-errors-result.ts';
import { evaluateFields } from '../bm25-fields.ts';
import {
  evalExpectations,
  modesExpectations,
  precisionExpectations,
  systemsExpectations,
  triageExpectations,
} from '../expectations/quality.ts';
import { compareFusions } from '../fusion-settings.ts';
import { comparePrecisions } from '../precision-quality.ts';
import { benchCase, type Reproduction } from '../reproduction.ts';
import { evaluateSample } from '../sample-quality.ts';
import { evaluateSystems } from '../systems-quality.ts';
import { measureTriageErrors } from '../triage-errors.ts';

const HOTPOT = join(SHARED, 'hotpot_val500_pooled');

export const QUALITY: readonly Reproduction[] = [
  {
    name: 'sample-quality',
    file: 'bench/results/sample-quality.json',
    about: 'recall of the bundled encoder over the sample corpus, by what is embedded',
    time: 'half a minute',
    run: async ({ file, scratch, signal }) => evaluateSample(file, scratch, signal),
    expectations: (result) => evalExpectations(result as EvalResult),
  },
  {
    name: 'evaluation',
    file: 'bench/results/evaluation.json',
    about:
      'recall by encoder, precision, mode, query form, reranking and graph over HotpotQA, SQuAD, the sample corpus and SciFact',
    time: 'half an hour',
    run: async ({ file, scratch, signal }) => evaluateSystems(file, scratch, signal),
    expectations: (result) => systemsExpectations(result as SystemsResult),
  },
  {
    name: 'fusion',
    file: 'bench/results/fusion.json',
    about: 'recall of dense, BM25 and hybrid search by settings and encoder over HotpotQA and SQuAD',
    time: '20 minutes',
    run: async ({ file, scratch, signal }) => compareFusions(file, scratch, signal),
    expectations: (result) => systemsExpectations(result as SystemsResult),
  },
  {
    name: 'modes',
    file: 'bench/results/modes.json',
    about: 'recall and latency of dense, BM25, hybrid and filtered search with the bundled encoder over HotpotQA',
    time: 'a minute',
    ...benchCase([
      ...['modes', '--model', 'token-average-256', '--corpus', join(HOTPOT, 'corpus.jsonl')],
      ...['--query-texts', join(HOTPOT, 'queries.jsonl')],
    ]),
    expectations: (result) => modesExpectations(result as BenchModesResult),
  },
  {
    name: 'bm25-fields',
    file: 'bench/results/bm25-fields.json',
    about: 'recall of BM25 over title and text as two fields, HotpotQA',
    time: 'half a minute',
    run: evaluateFields,
    expectations: (result) => evalExpectations(result as EvalResult),
  },
  {
    name: 'precision',
    file: 'bench/results/precision.json',
    about: 'recall of all-MiniLM-L6-v2 in float32, bfloat16 and int8 over HotpotQA and SQuAD',
    time: '40 minutes without AVX-512 BF16',
    run: async ({ file, scratch, signal }) => comparePrecisions(file, scratch, signal),
    expectations: (result) => precisionExpectations(result as PrecisionResult),
  },
  {
    name: 'triage',
    file: 'bench/results/triage.json',
    about: 'errors of the recall that `trawl triage` estimates, over HotpotQA and SQuAD',
    time: 'ten minutes',
    run: measureTriageErrors,
    expectations: (result) => triageExpectations(result as TriageErrorsResult),
  },
];
