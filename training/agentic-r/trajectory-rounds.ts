import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { itemError } from '../trajectories/read-items.ts';
import { reasoningContexts } from '../trajectories/reasoning-contexts.ts';
import type { Search, Trajectory } from '../trajectories/trajectory.ts';

/**
 * Which text is searched for the candidates of a round:
 * - `searched`: the text that the agent's own search used (`query_for_retrieval`), as Agentic-R does;
 * - `query`: the sub-query;
 * - `question-and-query`: `question [SEP] query`, composed by the index's encoder;
 * - `question`: the question.
 */
export const CANDIDATE_QUERY_FORMS = ['searched', 'query', 'question-and-query', 'question'] as const;
export type CandidateQueryForm = (typeof CANDIDATE_QUERY_FORMS)[number];

/** Why a trajectory has no candidates. */
export const DROP_REASONS = ['never-searched', 'no-question', 'no-assistant-text', 'search-tags-differ'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** A round whose candidates are to be searched. */
export interface OpenRound {
  readonly reasoningContext: string;
  readonly search: Search;
  readonly input: EncoderInput;
}

export interface RoundsOptions {
  readonly form: CandidateQueryForm;
  /** What precedes the agent's own text in the prompt. */
  readonly assistantMarker: string;
}

/**
 * The rounds of a trajectory, or why it is dropped. Agentic-R drops a trajectory that never searched, and one whose text has another
 * number of `</search>` than it has searches, because its rounds cannot be placed in the text. A recorded trajectory has no text: its
 * rounds have an empty reasoning context.
 */
export function roundsOf(
  trajectory: Trajectory,
  { form, assistantMarker }: RoundsOptions,
): readonly OpenRound[] | DropReason {
  const { searches, question, output, place } = trajectory;
  if (searches.length === 0) return 'never-searched';
  if (question === undefined) return 'no-question';
  const { prompt } = output;
  if (prompt !== undefined && typeof prompt !== 'string') throw itemError(place, '"output.prompt" is not a string');
  const contexts = prompt === undefined ? searches.map(() => '') : reasoningContexts(prompt, assistantMarker);
  if (contexts === undefined) return 'no-assistant-text';
  if (contexts.length !== searches.length) return 'search-tags-differ';
  return searches.map((search, i) => ({
    reasoningContext: contexts[i]!,
    search,
    input: inputOf(search, question, form),
  }));
}

function inputOf({ query, searchedText }: Search, question: string, form: CandidateQueryForm): EncoderInput {
  if (form === 'searched') return searchedText;
  if (form === 'query') return query;
  return form === 'question' ? question : { question, query };
}
