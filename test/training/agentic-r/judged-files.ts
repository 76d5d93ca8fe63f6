import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { UtilityFiles } from '../../../training/agentic-r/judged-rounds.ts';
import { type KeyedLines, openKeyedLines } from '../../../training/agentic-r/keyed-lines.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

/** A round with the utilities of its candidates in the order of retrieval; row numbers count from `firstRow`. */
export interface MadeRound {
  readonly id: string;
  /** Default: 1. */
  readonly round?: number;
  readonly query?: string;
  /** Default: that of the trajectory's first round. */
  readonly question?: string;
  readonly firstRow?: number;
  /** em and the judge's number of each candidate. */
  readonly utilities: readonly (readonly [em: number, local: number])[];
}

export interface MadeFiles {
  readonly candidates: string;
  readonly local: string;
  readonly global: string;
}

export function localLine({ id, round = 1, firstRow = 0, utilities }: MadeRound): object {
  const scores = utilities.map(([, local], i) => [String(firstRow + i), local]);
  return { id, round_index: round, docid_score: Object.fromEntries(scores) };
}

export function globalLine(made: MadeRound, history: readonly string[] = []): object {
  const { id, round = 1, firstRow = 0, utilities, query = `query ${round}`, question = `Question of ${id}?` } = made;
  const scores = utilities.map(([em], i) => [
    String(firstRow + i),
    { metric_score: { em, f1: em }, retrieved_times: 1 },
  ]);
  return {
    id,
    question,
    round_index: round,
    history_queries: history,
    current_query: query,
    docid_score: Object.fromEntries(scores),
  };
}

/** Writes the files of steps 2, 3-1 and 3-2; a round without entry in `local` or `global` is left out there. */
export async function judgedFiles(
  t: TestContext,
  rounds: readonly MadeRound[],
  lines: { readonly local?: readonly object[]; readonly global?: readonly object[] } = {},
): Promise<MadeFiles> {
  const folder = await tempFolder(t);
  const ids = [...new Set(rounds.map(({ id }) => id))];
  const historyOf = ({ id, round = 1 }: MadeRound): string[] =>
    rounds
      .filter((other) => other.id === id && (other.round ?? 1) < round)
      .map((other) => other.query ?? `query ${other.round ?? 1}`);
  const items = ids.map((id) => {
    const ofId = rounds.filter((round) => round.id === id);
    return {
      id,
      question: ofId[0]!.question ?? `Question of ${id}?`,
      golden_answers: ['Ada'],
      output: { prompt: '' },
      trajectory: ofId.map(({ round = 1, query = `query ${round}`, firstRow = 0, utilities }) => ({
        round_index: round,
        reasoning_context: `context ${round}`,
        current_query: query,
        candidate_passage_ids: utilities.map((_, i) => firstRow + i),
      })),
    };
  });
  const jsonl = (list: readonly object[]): string => list.map((line) => `${JSON.stringify(line)}\n`).join('');
  const files = {
    candidates: join(folder, 'hotpotqa.json'),
    local: join(folder, 'local.jsonl'),
    global: join(folder, 'global.jsonl'),
  };
  await writeFile(files.candidates, JSON.stringify(items, null, 4));
  await writeFile(files.local, jsonl(lines.local ?? rounds.map(localLine)));
  await writeFile(files.global, jsonl(lines.global ?? rounds.map((round) => globalLine(round, historyOf(round)))));
  return files;
}

/** Opens the utilities of files; closed after the test. */
export async function openFiles(
  t: TestContext,
  { local, global }: { readonly local?: string; readonly global?: string },
): Promise<UtilityFiles> {
  const open = async (path: string | undefined): Promise<KeyedLines | undefined> => {
    if (path === undefined) return undefined;
    const file = await openKeyedLines(path);
    t.after(() => file.close());
    return file;
  };
  return { local: await open(local), global: await open(global) };
}

/** 20 candidates: the given ones first, all others with em 0 and utility 10. */
export function twenty(...first: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  return [...first, ...Array.from({ length: 20 - first.length }, () => [0, 10] as const)];
}
