import type { InputType } from '../text-encoder.ts';

export interface ProbeText {
  readonly name: string;
  readonly inputType: InputType;
  readonly text: string;
}

/** The probe that may be refused for its length. */
export const LONG_PROBE = 'long';
/** Words of the longest probe: more than the 512 tokens of most small models. */
const LONG_WORDS = 700;
/** Above this many tokens, the longest probe does not reach the limit: it would cost more than it shows. */
const MAX_LONG_WORDS = 2_500;

const WORDS = ['river', 'glass', 'seven', 'north', 'paper', 'light', 'stone', 'early', 'music', 'table', 'winter'];

/**
 * The texts by which a changed endpoint is recognised: a short one as query and as passage (a lost prompt), other scripts, spaces at
 * both ends, upper and lower case (a changed tokeniser), digits and signs, and a long one, whose truncation may change.
 *
 * @param maxTokens limit that the endpoint states.
 */
export function probeTexts(maxTokens: number | null): readonly ProbeText[] {
  const words =
    maxTokens === null || maxTokens * 1.2 > MAX_LONG_WORDS ? LONG_WORDS : Math.max(LONG_WORDS, maxTokens * 1.2);
  return [
    { name: 'query', inputType: 'query', text: 'which river flows through Vienna' },
    { name: 'passage', inputType: 'passage', text: 'which river flows through Vienna' },
    { name: 'scripts', inputType: 'passage', text: 'Žižkov, Αθήνα, Київ, القاهرة, 東京, 서울' },
    { name: 'spaces', inputType: 'passage', text: '  a bridge over the Danube \n' },
    { name: 'upper case', inputType: 'passage', text: 'THE BRIDGE IS OLD' },
    { name: 'lower case', inputType: 'passage', text: 'the bridge is old' },
    { name: 'digits', inputType: 'passage', text: '3.14159 + 2/7 = ? (1989-11-09, "A-4", 50 %)' },
    { name: LONG_PROBE, inputType: 'passage', text: longText(Math.ceil(words)) },
  ];
}

/** Not periodic, so that a text that is cut at another place has another vector. */
function longText(words: number): string {
  return Array.from({ length: words }, (_, i) => WORDS[(i * i + Math.floor(i / 7)) % WORDS.length]).join(' ');
}
