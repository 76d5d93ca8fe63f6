import { type Kernel, loadKernel } from '../src/vector-index/kernel.ts';

/** The engine that makes the codes; without one an index is complete but slow to search. */
export function codesEngine(note: (text: string) => void): Kernel | undefined {
  const loaded = loadKernel();
  if (loaded.ok) return loaded.kernel;
  note(
    `The native engine is not there (${loaded.reason}): the index gets no search codes; \`trawl optimize\` makes them later.`,
  );
  return undefined;
}
