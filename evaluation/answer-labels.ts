const FEVER_LABELS: readonly string[] = ['SUPPORTS', 'REFUTES', 'NOT ENOUGH INFO'];

/** The answers that a passage can be searched for. */
export function withoutLabels(answers: readonly string[]): readonly string[] {
  return answers.filter((answer) => !isLabel(answer));
}

/**
 * Whether an answer is yes or no, true or false, or a class of FEVER, which judges claims: passages of any subject have the word, so
 * finding it says nothing.
 */
function isLabel(answer: string): boolean {
  return FEVER_LABELS.includes(answer.trim()) || /^\s*(yes|no|true|false)[\s.!]*$/i.test(answer);
}
