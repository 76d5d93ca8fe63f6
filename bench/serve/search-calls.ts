import { readFile } from 'node:fs/promises';
import { TrawlError } from '../../src/base/errors.ts';
import { Random } from '../../src/base/random.ts';

/** One search action of an agent. */
export interface SearchCall {
  readonly source: string;
  /** Number of the trajectory within its source. */
  readonly trajectory: number;
  readonly queries: readonly string[];
}

/**
 * Probability that a rollout sends the recorded query; otherwise it sends a similar one.
 *
 * @internal Exported for tests.
 */
export const SAME_QUERY_PROBABILITY = 0.55;

/**
 * Reads recorded search calls: JSON lines {"source", "traj", "turn", "queries"}, in the order they were made.
 *
 * @throws TrawlError USAGE if the file cannot be read or a line is not a search call.
 */
export async function readSearchCalls(path: string): Promise<SearchCall[]> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new TrawlError('USAGE', `${path}: cannot be read. Give a file of recorded search calls with --calls.`, {
      cause,
    });
  });
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line, i) => {
    const { source, traj, queries } = parse(line) as { source?: unknown; traj?: unknown; queries?: unknown };
    if (typeof source === 'string' && Number.isInteger(traj) && isTexts(queries) && queries.length > 0) {
      return { source, trajectory: traj as number, queries };
    }
    throw new TrawlError(
      'USAGE',
      `${path}, line ${i + 1}: not a search call {"source": text, "traj": number, "queries": [text, …]}.`,
    );
  });
}

function parse(line: string): object {
  try {
    return (JSON.parse(line) as object | null) ?? {};
  } catch {
    return {};
  }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}

/** Every query once, shuffled by the seed. */
export function distinctQueries(calls: readonly SearchCall[], seed: number): string[] {
  return shuffled([...new Set(calls.flatMap(({ queries }) => queries))], new Random(seed, 1, calls.length));
}

/**
 * The search calls of `rollouts` rollouts of each question, one list per rollout; rollouts of a question are adjacent. A
 * question is a recorded trajectory. For each recorded query a rollout sends the query itself with a probability of 0.55.
 * Otherwise it sends, with equal probability, another query of the trajectory (if there is one) or the query with its words
 * changed.
 */
export function rolloutTrace(
  calls: readonly SearchCall[],
  { questions, rollouts, seed }: { questions: number; rollouts: number; seed: number },
): string[][][] {
  const random = new Random(seed, rollouts, calls.length);
  const trajectories = new Map<string, (readonly string[])[]>();
  for (const { source, trajectory, queries } of calls) {
    const key = `${source}\n${trajectory}`;
    const known = trajectories.get(key);
    if (known === undefined) trajectories.set(key, [queries]);
    else known.push(queries);
  }
  const chosen = shuffled([...trajectories.values()], random).slice(0, questions);
  return chosen.flatMap((steps) => {
    const all = [...new Set(steps.flat())];
    return Array.from({ length: rollouts }, () =>
      steps.map((queries) => queries.map((query) => rolloutQuery(query, all, random))),
    );
  });
}

function rolloutQuery(query: string, ofTrajectory: readonly string[], random: Random): string {
  if (random.uniform() <= SAME_QUERY_PROBABILITY) return query;
  const others = ofTrajectory.filter((other) => other !== query);
  return others.length > 0 && random.below(2) === 0 ? others[random.below(others.length)]! : perturbed(query, random);
}

/** Imitates another sample of the model: swaps two words or leaves one out. */
function perturbed(query: string, random: Random): string {
  const words = query.split(' ');
  if (words.length < 2) return `${query} ${query}`;
  const at = random.below(words.length - 1);
  if (words.length > 2 && random.below(2) === 0) words.splice(at, 1);
  else [words[at], words[at + 1]] = [words[at + 1]!, words[at]!];
  return words.join(' ');
}

function shuffled<Value>(values: Value[], random: Random): Value[] {
  for (let i = values.length - 1; i > 0; i--) {
    const other = random.below(i + 1);
    [values[i], values[other]] = [values[other]!, values[i]!];
  }
  return values;
}
