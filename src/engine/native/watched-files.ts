import { type Kernel, loadKernel } from './kernel.ts';
import type { NativeWatch } from './search-functions.ts';

/**
 * Files that a library of this process has open for long, perhaps mapped. Watch them once the library has mapped them: on Linux, a page
 * that cannot be read then no longer ends the process. Without the native engine they are not watched.
 */
export class WatchedFiles {
  readonly #kernel: Kernel | undefined;
  readonly #watches: readonly NativeWatch[];

  /** @throws TrawlError INDEX_FILE_MISSING if a file cannot be opened. */
  constructor(paths: readonly string[]) {
    const loaded = paths.length === 0 ? undefined : loadKernel();
    this.#kernel = loaded?.ok === true ? loaded.kernel : undefined;
    this.#watches = loaded?.ok !== true ? [] : paths.map((path) => loaded.kernel.watchFile(path));
  }

  /** Whether a library may map files. If not, one that is truncated would end the process. */
  static get areGuarded(): boolean {
    return process.platform === 'linux' && loadKernel().ok;
  }

  /** @throws TrawlError FILE_CHANGED if a file is no longer what it was when it was opened: what was read may be wrong. */
  requireUnchanged(): void {
    for (const watch of this.#watches) this.#kernel?.requireUnchanged(watch);
  }

  close(): void {
    for (const watch of this.#watches) this.#kernel?.closeWatch(watch);
  }
}
