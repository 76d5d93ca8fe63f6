import { withoutLabels } from '../../../evaluation/answer-labels.ts';
import type { Question } from '../../../evaluation/read-questions.ts';
import { KnownQuestions } from '../../records/known-questions.ts';
import type { Trajectory } from '../trajectory.ts';
import type { Gold } from './trajectory-facts.ts';
import { type GroupReport, TrajectoryTally } from './trajectory-tally.ts';

/** Question types told apart; a file with more has ids in that field. */
const MAX_TYPES = 50;

export interface TrajectoryReport {
  /** All trajectories. */
  readonly all: GroupReport;
  /** By question type, by name; empty if no question has a type. */
  readonly types: readonly GroupReport[];
  /** Trajectories whose question is not in the questions file; null without such a file. */
  readonly unknownQuestions: number | null;
}

/**
 * What trajectories reached and what their searches wasted. Golden answers come from the questions, else from the trajectories; relevant
 * passages and types only from the questions, which are found as `KnownQuestions` says.
 */
export async function trajectoryReport(
  trajectories: AsyncIterable<Trajectory>,
  questions: readonly Question[] | undefined,
): Promise<TrajectoryReport> {
  const knownQuestions = new KnownQuestions(questions ?? []);
  const all = new TrajectoryTally(null);
  const types = new Map<string, TrajectoryTally>();
  let unknownQuestions = 0;
  for await (const trajectory of trajectories) {
    const { questionId, dataset, question } = trajectory;
    const known = knownQuestions.find({ id: questionId, dataset, text: question });
    if (known === undefined) unknownQuestions += 1;
    const gold = goldOf(trajectory, known);
    all.add(trajectory, gold);
    const type = known?.type;
    if (type === undefined) continue;
    const name = types.has(type) || types.size < MAX_TYPES ? type : 'other types';
    const tally = types.get(name) ?? new TrajectoryTally(name);
    types.set(name, tally);
    tally.add(trajectory, gold);
  }
  return {
    all: all.report(),
    types: [...types.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, tally]) => tally.report()),
    unknownQuestions: questions === undefined ? null : unknownQuestions,
  };
}

function goldOf({ goldenAnswers }: Trajectory, known: Question | undefined): Gold {
  const answers = known?.goldenAnswers ?? [];
  return { ids: known?.goldIds ?? [], answers: withoutLabels(answers.length > 0 ? answers : goldenAnswers) };
}
