import { usageError } from '../../src/base/errors.ts';
import { itemError } from '../trajectories/read-items.ts';
import { UtilityCheck, type UtilityCounts } from './check-utilities.ts';
import {
  EXCLUSION_RULES,
  type ExclusionRule,
  type Exclusions,
  SiblingPositives,
  withoutExcluded,
} from './exclusions.ts';
import { type JudgedRound, judgedRounds, type UtilityFiles } from './judged-rounds.ts';
import type { KnownPassage } from './passage-texts.ts';
import { roundKey } from './round-key.ts';
import { seededSample } from './seeded-sample.ts';
import { type JudgedCandidate, type RuleSettings, splitCandidates } from './training-rule.ts';

/** Why a round with utilities gives no rows. */
export const RULE_DROPS = ['not-correct', 'below-threshold', 'too-few-negatives'] as const;
export type RuleDrop = (typeof RULE_DROPS)[number];

/** A row of training data, in the format of Agentic-R's fork of tevatron. */
interface TrainingRow {
  readonly dataset: string;
  readonly query_id: string;
  readonly question: string;
  readonly round_index: number;
  readonly history_queries: readonly string[];
  readonly query_text: string;
  /** The positive first. */
  readonly passage_ids: readonly string[];
  readonly scores: readonly { readonly em?: number; readonly local_utility?: number }[];
}

export interface ConstructSettings extends RuleSettings {
  readonly dataset: string;
  readonly seed: number;
  readonly excludeCorrect: boolean;
  readonly excludeSiblings: boolean;
  /** Excludes duplicates of positives by these texts. Default: no exclusion. */
  readonly duplicatesBy?: ReadonlyMap<number, KnownPassage> | undefined;
  /** Write the ids of the corpus instead of rows. */
  readonly corpusIds?: ReadonlyMap<number, KnownPassage> | undefined;
  /** Take the history from the candidates file, which has all queries, instead of the file of step 3-2. */
  readonly fullHistory: boolean;
}

export interface ConstructCounts {
  readonly utilities: UtilityCounts;
  /** Rounds with utilities that gave no rows. */
  readonly dropped: Readonly<Record<RuleDrop, number>>;
  /** Rounds that gave rows, and the rows. */
  readonly rounds: number;
  readonly rows: number;
  /** Positives of these rounds that no row has, because a round gives at most `positives` rows. */
  readonly unusedPositives: number;
  /** Negatives in rows with `em` 1, counted once a round. */
  readonly correctNegatives: number;
  /** Negatives that a rule excluded. */
  readonly excluded: Readonly<Record<ExclusionRule, number>>;
}

/**
 * Makes training rows of judged candidates by the rule of Agentic-R's step 4 and passes their JSON lines to `write`, in the order of the
 * candidates file. All rows of a round have the same negatives, drawn with a seed made of `seed`, the data set, the id and the round.
 *
 * @throws TrawlError CORPUS_BAD_LINE; USAGE if a file of utilities has no round of the candidates file.
 */
export async function constructRows(
  candidates: string,
  files: UtilityFiles,
  settings: ConstructSettings,
  { write, signal }: { write: (line: string) => Promise<void>; signal?: AbortSignal | undefined },
): Promise<ConstructCounts> {
  const exclusions: Exclusions = {
    correct: settings.excludeCorrect,
    duplicatesBy: settings.duplicatesBy,
    siblings: settings.excludeSiblings ? await siblingPositives(candidates, files, settings, signal) : undefined,
  };
  const check = new UtilityCheck(files);
  const dropped: Record<RuleDrop, number> = { 'not-correct': 0, 'below-threshold': 0, 'too-few-negatives': 0 };
  const excluded: Record<ExclusionRule, number> = { correct: 0, duplicate: 0, sibling: 0 };
  let [rounds, rows, unusedPositives, correctNegatives] = [0, 0, 0, 0];
  for await (const judged of judgedRounds(candidates, files, signal)) {
    if (!check.add(judged) || judged.problem !== undefined) continue;
    const split = splitCandidates(judgedCandidates(judged), settings);
    if (typeof split === 'string') {
      dropped[split] += 1;
      continue;
    }
    const left = withoutExcluded(judged.item.question, split, exclusions);
    for (const rule of EXCLUSION_RULES) excluded[rule] += left.excluded[rule];
    const wanted = settings.groupSize - 1;
    if (left.kept.length < wanted) {
      dropped['too-few-negatives'] += 1;
      continue;
    }
    const key = `${settings.dataset}\0${roundKey(judged.item.id, judged.round.round_index)}`;
    const negatives = seededSample(left.kept, wanted, { seed: settings.seed, key });
    const positives = split.positives.slice(0, settings.positives);
    for (const positive of positives) {
      await write(`${JSON.stringify(trainingRow(judged, [positive, ...negatives], settings))}\n`);
    }
    rounds += 1;
    rows += positives.length;
    unusedPositives += split.positives.length - positives.length;
    correctNegatives += negatives.filter(({ em }) => em === 1).length;
  }
  const utilities = check.counts();
  refuseOtherFiles(candidates, files, utilities);
  return { utilities, dropped, rounds, rows, unusedPositives, correctNegatives, excluded };
}

/** The candidates of a round in the order of retrieval. */
function judgedCandidates({ round, local, global }: JudgedRound): readonly JudgedCandidate[] {
  return round.candidate_passage_ids.map((row) => {
    const score = local?.get(row);
    return { row, em: global?.em.get(row), local: score === undefined ? undefined : score / 100 };
  });
}

function trainingRow(
  { item, round, history, global }: JudgedRound,
  passages: readonly JudgedCandidate[],
  { dataset, corpusIds, fullHistory }: ConstructSettings,
): TrainingRow {
  const idOf = ({ row }: JudgedCandidate): string => {
    if (corpusIds === undefined) return String(row);
    const known = corpusIds.get(row);
    if (known === undefined) throw itemError(item.place, `passage ${row} is not in the file of --passages`);
    return known.corpusId;
  };
  return {
    dataset,
    query_id: item.id,
    // With local utilities alone, the original writes an empty question, so that training would embed " [SEP] query".
    question: global?.question ?? item.question,
    round_index: round.round_index,
    history_queries: fullHistory ? history : (global?.history ?? history),
    query_text: round.current_query,
    passage_ids: passages.map(idOf),
    scores: passages.map(({ em, local }) => ({
      em,
      local_utility: local,
    })),
  };
}

/** The positives of all rounds; several trajectories may have the same question. */
async function siblingPositives(
  candidates: string,
  files: UtilityFiles,
  settings: ConstructSettings,
  signal: AbortSignal | undefined,
): Promise<SiblingPositives> {
  const siblings = new SiblingPositives();
  for await (const judged of judgedRounds(candidates, files, signal)) {
    if (judged.problem !== undefined) continue;
    const split = splitCandidates(judgedCandidates(judged), settings);
    if (typeof split === 'string') continue;
    siblings.add(judged.item.question, split.positives, settings.duplicatesBy);
  }
  return siblings;
}

/** Utilities of another agent or data set would silently give no rows. */
function refuseOtherFiles(candidates: string, files: UtilityFiles, { local, global }: UtilityCounts): void {
  for (const [file, counts] of [
    [files.local, local],
    [files.global, global],
  ] as const) {
    if (file === undefined || counts === undefined || counts.rounds === 0 || counts.unknown < counts.rounds) continue;
    throw usageError(
      `None of the ${counts.rounds} rounds of ${file.path} is in ${candidates}: "id" and "round_index" must occur in the candidates. Is it the file of another data set or agent?`,
    );
  }
}
