import { lineError, readTextLines } from '../src/base/files/read-text-lines.ts';
import { parseQuestion, type Question } from './read-questions.ts';

/**
 * Reads a file of questions one by one, so that its size does not matter. Ids may repeat. Throws CORPUS_BAD_LINE for an invalid line,
 * CORPUS_NOT_FOUND if the file cannot be read.
 */
export async function* questionLines(file: string): AsyncGenerator<Question, void> {
  for await (const { number, text } of readTextLines(file)) {
    yield parseQuestion(text, (reason) => lineError(file, number, reason));
  }
}
