import type { Candidate, MinedPassage, MiningQuery } from '../../../training/mining/mined-query.ts';

/** A passage without a place in a list. */
export function passage(id: string, text: string, options: Partial<MinedPassage> = {}): MinedPassage {
  const { title = '' } = options;
  return {
    row: [...id].reduce((sum, char) => 100 * sum + char.charCodeAt(0), 0),
    id,
    title,
    text,
    contents: title === '' ? text : `"${title}"\n${text}`,
    rank: null,
    score: null,
    ...options,
  };
}

export function candidate(id: string, text: string, options: Partial<Candidate> = {}): Candidate {
  return { ...passage(id, text, options), rank: 1, score: 0.5, ...options };
}

export function miningQuery(options: Partial<MiningQuery> = {}): MiningQuery {
  return { id: 'q', question: 'Who built the bridge?', positiveIds: ['p1'], answers: [], ...options };
}
