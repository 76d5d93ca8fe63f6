import { type Evaluation, evaluateRun } from '../evaluate-run.ts';
import type { Judgements } from '../judgements.ts';
import { answersOf, type Question, titleJudgementsOf } from '../read-questions.ts';
import type { SearchedSystem } from './searched-system.ts';

/** A system with its metrics. */
export interface MeasuredSystem {
  readonly system: SearchedSystem;
  readonly evaluation: Evaluation;
  /** The notes of the system, and on what could not be measured. */
  readonly notes: readonly string[];
}

/** Computes the metrics of a system over questions that it answered. */
export function measureSystem(
  system: SearchedSystem,
  {
    questions,
    judgements,
    cutoffs,
  }: { readonly questions: readonly Question[]; readonly judgements: Judgements; readonly cutoffs: readonly number[] },
): MeasuredSystem {
  const { run, lists, hasIds, hasTexts, name } = system;
  const titles = titleJudgementsOf(questions);
  const answers = answersOf(questions);
  const evaluation = evaluateRun({
    queryIds: questions.map(({ id }) => id),
    run,
    ...(lists === undefined ? {} : { lists }),
    judgements: hasIds ? judgements : new Map(),
    ...(hasTexts ? { titleJudgements: titles, answers } : {}),
    cutoffs,
  });
  const unmeasured = [...(titles.size > 0 ? ['title_*'] : []), ...(answers.size > 0 ? ['answer_*'] : [])];
  return {
    system,
    evaluation,
    notes: [
      ...system.notes,
      ...(hasTexts || unmeasured.length === 0
        ? []
        : [
            `${name} has no titles and texts, so ${unmeasured.join(' and ')} are not measured. Compare it with an index that has its passages: --compare INDEX.`,
          ]),
    ],
  };
}
