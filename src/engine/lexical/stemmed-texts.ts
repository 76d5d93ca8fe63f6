import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../base/abort.ts';
import { snowballTerms } from './analysis/snowball.ts';
import { type AnalyserName, isSnowball, type SnowballAnalyser } from './lexical-settings.ts';

/** UTF-16 units of a text that are read in one time slice of the event loop: some milliseconds, even for made-up words. */
const UNITS_PER_SLICE = 4_096;

/** The texts as the engine analyses them: as they are, or with a Snowball analyser their terms. @throws TrawlError CANCELLED */
export async function engineTexts(
  analyser: AnalyserName,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<readonly string[]> {
  return isSnowball(analyser) ? stemmedTexts(analyser, texts, signal) : texts;
}

/**
 * Replaces each text by its terms, separated by spaces, for the engine's analyser `whitespace`. Runs in short slices of the event
 * loop, so that a long query does not hold up others.
 *
 * @throws TrawlError CANCELLED
 */
async function stemmedTexts(
  analyser: SnowballAnalyser,
  texts: readonly string[],
  signal: AbortSignal | undefined,
): Promise<string[]> {
  throwIfCancelled(signal);
  const stemmed: string[] = [];
  let units = 0;
  for (const text of texts) {
    const terms: string[] = [];
    let before = 0;
    for (const found of snowballTerms(analyser, text)) {
      if (found !== null) {
        if (found.term !== '') terms.push(found.term);
        units += found.end - before;
        before = found.end;
        if (units < UNITS_PER_SLICE) continue;
      }
      units = 0;
      await setImmediate();
      throwIfCancelled(signal);
    }
    stemmed.push(terms.join(' '));
  }
  return stemmed;
}
