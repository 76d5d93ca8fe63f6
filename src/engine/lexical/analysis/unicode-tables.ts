import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../../base/package-root.ts';

/** What native/unicode/generate-tables.mjs writes; arrays of bytes are base64. */
const tables = JSON.parse(readFileSync(join(packageRoot, 'src/engine/lexical/analysis/unicode-tables.json'), 'utf8'));
const bytes = (base64: string): Uint8Array => new Uint8Array(Buffer.from(base64, 'base64'));

/** Classes of the automaton. Class 0 begins no token. */
export const CLASS_COUNT: number = tables.classCount;
/** Class of a code point c: CLASS_BLOCKS[CLASS_BLOCK_OF[c >> 8] * 256 + (c & 255)]. */
export const CLASS_BLOCK_OF = bytes(tables.classBlockOf);
export const CLASS_BLOCKS = bytes(tables.classBlocks);
/** The state after `state` on `class`: NEXT_STATE[state * CLASS_COUNT + class]. State 0 is dead, state 1 the start. */
export const NEXT_STATE = bytes(tables.nextState);
/** Number of the rule that a state accepts, which is the token's type; 0 if it accepts none. */
export const ACCEPTED_RULE = bytes(tables.acceptedRule);
/** Runs of four numbers: first, last, step, difference. The lower case of first, first + step, … last is the code point plus difference. */
export const LOWER_CASE_RUNS: readonly number[] = tables.lowerCaseRuns;
