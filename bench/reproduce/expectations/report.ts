import { type AllResult, resultOf } from '../../all/all-result.ts';
import { type Expectation, GRAPH_RECALL, QUALITY } from '../expectation.ts';
import { encoderExpectations } from './encoders.ts';
import { flatExpectations } from './search.ts';
import { serverExpectations } from './servers.ts';

/** Ratios, recall and memory. Times are left out: they are those of a machine. */
export function allExpectations(all: AllResult): Expectation[] {
  const flat = flatExpectations({ records: resultOf(all, 'flat')?.records ?? [] });
  const serve = serverExpectations({ records: resultOf(all, 'serve')?.records ?? [] });
  const embed = encoderExpectations({ records: resultOf(all, 'embed')?.records ?? [] });
  const graphs = (resultOf(all, 'approximate')?.records ?? []).map(({ engine, effort, recall }) => ({
    name: `vectors, ${engine}${effort === null ? '' : `, efSearch ${effort}`}: recall`,
    value: recall,
    tolerance: effort === null ? { difference: 0.001 } : GRAPH_RECALL,
  }));
  const questions = (resultOf(all, 'questions')?.records ?? []).map(
    ({ engine, mode, effort = null, over, recallAt10 }) => ({
      name: `questions, ${engine}${effort === null ? '' : `, efSearch ${effort}`}, ${mode}, ${over}: recall@10`,
      value: recallAt10,
      tolerance: effort === null ? QUALITY : GRAPH_RECALL,
    }),
  );
  return [...flat, ...embed, ...serve, ...graphs, ...questions];
}
