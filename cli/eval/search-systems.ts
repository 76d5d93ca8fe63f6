import { addTexts } from './add-texts.ts';
import { searchIndex } from '../../evaluation/systems/search-index.ts';
import { searchRun } from '../../evaluation/systems/search-run.ts';
import { searchServer } from '../../evaluation/systems/search-server.ts';
import type { Asked, SearchedSystem } from '../../evaluation/systems/searched-system.ts';
import type { SystemSpec } from './system-text.ts';

/**
 * Searches all systems in turn, indexes last: the first of them gives the passages of run files their titles and texts. Returns the
 * systems in the given order.
 *
 * @throws TrawlError of the first system that cannot be searched.
 */
export async function searchSystems(
  specs: readonly SystemSpec[],
  { asked, further, forRun }: { readonly asked: Asked; readonly further: readonly string[]; readonly forRun: boolean },
): Promise<SearchedSystem[]> {
  const searched = new Map<SystemSpec, SearchedSystem>();
  for (const spec of specs) {
    if (spec.kind === 'run') searched.set(spec, await searchRun(spec, asked));
    else if (spec.kind === 'server') searched.set(spec, await searchServer(spec, asked, forRun));
  }
  const first = specs[0]!.place;
  for (const spec of specs) {
    if (spec.kind !== 'index') continue;
    const system = await searchIndex(spec, asked, {
      further: spec.place === first ? further : [],
      forRun,
      async use(retriever) {
        for (const [other, found] of searched)
          if (!found.hasTexts) searched.set(other, await addTexts(found, retriever, spec.place, asked.signal));
      },
    });
    searched.set(spec, system);
  }
  return specs.map((spec) => searched.get(spec)!);
}
