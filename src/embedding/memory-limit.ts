import { totalmem } from 'node:os';
import { controlGroupTexts, type ReadText, readTextFile } from './control-group.ts';

/**
 * Bytes that this process could use at most: the machine's memory, or its control group's limit where that is less. Not
 * what is free at the moment: what is decided by it changes the last bits of vectors, and is to be the same in every run.
 */
export function memoryLimit(readText: ReadText = readTextFile, machine: number = totalmem()): number {
  // "max", or in version 1 a number near 2^63, is no limit.
  const limits = [
    ...controlGroupTexts('memory.max', '', readText),
    ...controlGroupTexts('memory.limit_in_bytes', 'memory', readText),
  ].flatMap((text) => (/^\d+$/.test(text) ? [Number(text)] : []));
  return Math.min(machine, ...limits);
}
