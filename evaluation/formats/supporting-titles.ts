import { columnsOf } from '../question-columns.ts';
import { distinctTexts } from './question-format.ts';

/**
 * The titles of HotpotQA's `supporting_facts`: pairs of a title and a sentence number, or, in the Hugging Face and FlashRAG versions,
 * `{"title": […], "sent_id": […]}`. Undefined for anything else.
 */
export function supportingTitles(facts: unknown): string[] | undefined {
  const titles = Array.isArray(facts)
    ? facts.map((fact: unknown) => (Array.isArray(fact) ? (fact[0] as unknown) : undefined))
    : columnsOf(facts)?.get('title');
  if (!Array.isArray(titles) || !titles.every((title) => typeof title === 'string')) return undefined;
  return distinctTexts(titles);
}
