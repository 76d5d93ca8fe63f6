import { evaluateRun } from '../../evaluation/evaluate-run.ts';
import type { Judgements } from '../../evaluation/judgements.ts';
import { type QueryForm, queryOf } from '../../evaluation/query-form.ts';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { answersOf, type Question } from '../../evaluation/read-questions.ts';
import { asTrawlError, TrawlError, usageError } from '../../src/base/errors.ts';
import { type Gates, refusals } from '../iteration/gates.ts';
import { changesOf, comparedAnswers } from '../iteration/measure-iteration.ts';
import type { Measures } from '../iteration/records.ts';
import type { RankedList } from '../replay/rank-biased-overlap.ts';
import type { Probe } from './roll-out.ts';
import type { RolloutServer } from './rollout-server.ts';

const BATCH = 64;

export interface ProbeOptions {
  readonly questions: string;
  readonly qrels: string | undefined;
  readonly form: QueryForm;
  readonly recallK: number;
  readonly changedK: number;
  readonly gates: Gates;
  /** Whether the user gave the limit, which cannot be left out then. */
  readonly isRecallDropGiven: boolean;
  readonly signal: AbortSignal;
}

type Answers = Awaited<ReturnType<typeof ask>>;

/** Asks the questions of a file, and compares the answers with the judgements and with the old index's answers. */
export async function rolloutProbe(options: ProbeOptions): Promise<Probe<Answers>> {
  const { questions, judgements } = await readQuestionSet(options.questions, { qrels: options.qrels });
  const { gates } = options;
  const isJudged = questions.some(({ id }) => judgements.has(id));
  if (!isJudged && (gates.minRecall !== undefined || options.isRecallDropGiven)) {
    throw usageError(
      `No question of ${options.questions} is judged, so recall cannot be measured. Pass --qrels, or no --min-recall and --max-recall-drop.`,
    );
  }
  for (const question of questions) queryOf(question, options.form);
  const measuresOf = (before: Answers, now: Answers): Measures => measures(options, judgements.size, before, now);
  // Without judgements only the changes count.
  const applied: Gates = isJudged ? gates : { ...gates, maxRecallDrop: 1 };
  return {
    ask: (server) => ask(options, questions, judgements, server),
    refusals(before, now) {
      if (before !== undefined) {
        return [...emptied(before, now), ...refusals(measuresOf(before, now), applied).map(({ text }) => text)];
      }
      const alone: Gates = { ...gates, maxRecallDrop: 1, maxChanged: undefined, maxReplaced: undefined };
      const compared = [
        ...(options.isRecallDropGiven && gates.maxRecallDrop < 1 ? ['--max-recall-drop'] : []),
        ...(gates.maxChanged === undefined ? [] : ['--max-changed']),
        ...(gates.maxReplaced === undefined ? [] : ['--max-replaced']),
      ];
      return [
        ...refusals(measuresOf(now, now), alone).map(({ text }) => text),
        ...compared.map((name) => `${name} cannot be measured, because no server has the old index. Omit it.`),
      ];
    },
    figures(before, now) {
      const { now: means, before: earlier, answers } = measuresOf(before ?? now, now);
      const recall = `recall@${options.recallK}`;
      return {
        ...(isJudged ? { [recall]: means[recall]!, [`${recall} before`]: earlier[recall]! } : {}),
        changed: answers.queries === 0 ? null : answers.changed / answers.queries,
        replaced: answers.replaced,
      };
    },
  };
}

function emptied(before: Answers, now: Answers): string[] {
  const lost = [...before.lists].filter(
    ([id, { passages }]) => passages.length > 0 && now.lists.get(id)?.passages.length === 0,
  );
  return lost.length === 0
    ? []
    : [`${lost.length} questions get no passage, and got some before; the first is ${lost[0]![0]}.`];
}

async function ask(
  { form, recallK, changedK, signal }: ProbeOptions,
  questions: readonly Question[],
  judgements: Judgements,
  { url, client }: RolloutServer,
) {
  const k = Math.max(recallK, changedK, 10);
  const lists = new Map<string, RankedList>();
  const generations = new Set<string>();
  try {
    for (let start = 0; start < questions.length; start += BATCH) {
      const batch = questions.slice(start, start + BATCH);
      const queries = batch.map((question) => {
        const query = queryOf(question, form);
        return typeof query === 'string'
          ? query
          : { query: query.query, question: query.question ?? null, history: query.history ?? null };
      });
      const { results, index } = await client.search({ queries, k }, { signal });
      generations.add(index.generation);
      results.forEach((result, i) => {
        if (!result.ok) throw new Error(`question ${batch[i]!.id} fails: ${result.error.message}`);
        const hits = result.hits ?? [];
        lists.set(batch[i]!.id, {
          passages: hits.map(({ id, row }) => String(id ?? row)),
          scores: hits.map(({ score }) => score),
        });
      });
    }
  } catch (error) {
    if (signal.aborted) throw asTrawlError(error);
    throw new TrawlError('ROLLOUT_FAILED', `${url}: the questions cannot be asked: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const run = new Map(
    Array.from(lists, ([id, { passages, scores }]) => [
      id,
      passages.map((each, i) => ({ id: each, score: scores![i]!, text: '' })),
    ]),
  );
  const { means } = evaluateRun({
    queryIds: questions.map(({ id }) => id),
    run,
    judgements,
    answers: answersOf(questions),
    cutoffs: [recallK],
  });
  return { generation: [...generations].join(), lists, means };
}

function measures({ recallK, changedK }: ProbeOptions, judged: number, before: Answers, now: Answers): Measures {
  return {
    against: before.generation,
    settings: {},
    judged,
    recallK,
    before: { ...before.means },
    now: { ...now.means },
    answers: { of: 'questions', ...changesOf(comparedAnswers(before.lists, now.lists, changedK)) },
  };
}
