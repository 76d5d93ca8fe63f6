import { bootstrapInterval, meanOf } from '../../evaluation/bootstrap.ts';
import { bug } from '../../src/base/errors.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import type { RecallEstimator } from './estimate-recall.ts';
import type { JudgedQuestions } from './judged-questions.ts';
import type { Pool, PoolSource } from './pool.ts';
import type { PoolVectors } from './pool-vectors.ts';
import type { PresentLists } from './present-lists.ts';
import type { RecordedLists } from './recorded-lists.ts';
import {
  type Estimate,
  type Gate,
  type RecallAt,
  type TriageReport,
  type TriedRecall,
  thresholdOf,
  verdictOf,
} from './triage-report.ts';

/** What the parts of a trial found. */
interface TriageFindings {
  /** In the clock of `performance.now`. */
  readonly begun: number;
  readonly questions: JudgedQuestions;
  /** Where the chosen passages of the pool come from. */
  readonly sources: readonly PoolSource[];
  readonly records: RecordedLists | undefined;
  readonly unknownIds: number;
  readonly present: PresentLists;
  readonly pool: Pool;
  readonly tried: { readonly estimator: RecallEstimator; readonly vectors: Pick<PoolVectors, 'embedMs' | 'resumed'> };
  /** The present encoder as if it were new. */
  readonly asNew: RecallEstimator | undefined;
}

/** The options of a trial that the report needs, as in `TriageOptions`. */
interface ReportSettings {
  readonly retriever: Pick<Retriever, 'info'>;
  readonly encoder: Pick<TextEncoder, 'identity'>;
  readonly cutoffs: readonly number[];
  readonly seed: number;
  readonly gate: Gate;
  readonly depth: number;
  readonly sample: number;
}

/** Makes the report of a trial: recall at each k with its interval, the verdict of the gate, and what it took. */
export function makeReport(
  { begun, questions, sources, records, unknownIds, present, pool, tried, asNew }: TriageFindings,
  { retriever, encoder, cutoffs, seed, gate, depth, sample }: ReportSettings,
): TriageReport {
  const recall = cutoffs.map((k): RecallAt => {
    const whole = present.recalls(k);
    const hasEstimate = pool.sampled.count() > 0 || pool.chosen.count() === pool.whole;
    const estimated = tried.estimator.recalls('tail', k);
    const triedRecall: TriedRecall = {
      bound: estimateOf(tried.estimator.recalls('bound', k), seed),
      estimate: hasEstimate ? estimateOf(estimated, seed) : null,
      counts: hasEstimate ? meanOf(tried.estimator.recalls('counts', k)) : null,
    };
    return {
      k,
      tried: triedRecall,
      present: {
        whole: estimateOf(whole, seed),
        asNew:
          asNew === undefined
            ? null
            : {
                bound: meanOf(asNew.recalls('bound', k)),
                estimate: meanOf(asNew.recalls('tail', k)),
                counts: meanOf(asNew.recalls('counts', k)),
              },
      },
      change: hasEstimate
        ? estimateOf(
            estimated.map((value, i) => value - whole[i]!),
            seed,
          )
        : null,
    };
  });
  const decisive = recall.find(({ k }) => k === gate.k);
  if (decisive === undefined) throw bug(`the gate's k ${gate.k} is none of the cutoffs`);
  const threshold = thresholdOf(gate, decisive.present.whole.value);
  const { info } = retriever;
  const { name, sha256, precision, dimension } = encoder.identity;
  const { vectors } = tried;
  const poolCount = pool.chosen.count() + pool.sampled.count();
  return {
    index: { name: info.index, generation: info.generation, model: info.model?.name ?? null },
    model: { name, sha256, precision, dimension },
    questions: {
      read: questions.read,
      judged: questions.judged.length,
      unjudged: questions.unjudged,
      relevant: questions.relevant,
      missing: questions.missing,
    },
    passages: {
      whole: pool.whole,
      pool: poolCount,
      chosen: pool.chosen.count(),
      sampled: pool.sampled.count(),
      sources: sources.map((source) => ({ name: source.name, passages: source.rows.count() })),
      unknownIds,
    },
    records: records === undefined ? null : { read: records.records, ofOtherQuestions: records.ofOtherQuestions },
    settings: { depth, sample, seed },
    recall,
    gate,
    threshold,
    verdict: verdictOf(decisive, threshold),
    times: {
      embedMs: vectors.embedMs,
      resumed: vectors.resumed,
      passagesPerSecond: (1000 * poolCount) / vectors.embedMs,
      wholeMs: (vectors.embedMs * pool.whole) / poolCount,
      totalMs: performance.now() - begun,
    },
  };
}

function estimateOf(values: Float64Array, seed: number): Estimate {
  return { value: meanOf(values), ...(bootstrapInterval(values, seed) ?? { low: null, high: null }) };
}
