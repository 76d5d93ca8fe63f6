/** Between question and sub-query in a text that a client composed of both, as Agentic-R's clients do. */
export const COMPOSED_SEPARATOR = ' [SEP] ';

export interface ComposedParts {
  readonly question: string;
  /** All that follows the question, further separators included. */
  readonly query: string;
}

/**
 * The question and the sub-query of a composed text. It is cut after `known` if it begins with that question, else at the first
 * separator. Undefined if the text is not composed: it has no separator, or nothing before it.
 */
export function composedParts(text: string, known?: string): ComposedParts | undefined {
  const end = known !== undefined && beginsWith(text, known) ? known.length : text.indexOf(COMPOSED_SEPARATOR);
  if (end < 1) return undefined;
  return { question: text.slice(0, end), query: text.slice(end + COMPOSED_SEPARATOR.length) };
}

/** The sub-query of a text that was composed with this question; any other text as it is. */
export function withoutQuestion(text: string, question: string): string {
  return beginsWith(text, question) ? text.slice(question.length + COMPOSED_SEPARATOR.length) : text;
}

function beginsWith(text: string, question: string): boolean {
  return text.startsWith(`${question}${COMPOSED_SEPARATOR}`);
}
