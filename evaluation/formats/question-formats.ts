import { dpr } from './dpr.ts';
import { hotpotQa } from './hotpot-qa.ts';
import { kilt } from './kilt.ts';
import { musique } from './musique.ts';
import { plainQuestions } from './plain-questions.ts';
import type { QuestionFormat } from './question-format.ts';
import { questionsAndAnswers } from './questions-and-answers.ts';
import { triviaQa } from './trivia-qa.ts';

/** All formats, in the order in which they are tried: the first that matches the first entry of a file is that of the file. */
export const QUESTION_FORMATS: readonly QuestionFormat[] = [
  musique,
  hotpotQa,
  kilt,
  triviaQa,
  dpr,
  questionsAndAnswers,
  plainQuestions,
];
