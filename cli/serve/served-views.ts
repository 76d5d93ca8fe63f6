import { usageError } from '../../src/base/errors.ts';
import { readViews } from '../../src/index/views/read-views.ts';
import type { ViewDefinition } from '../../src/index/views/view-definition.ts';
import type { AccessKeys } from '../../src/server/access/access-keys.ts';
import { namedView } from '../options/view-options.ts';

interface ServedViewsOptions {
  /** The file of `--views`. */
  readonly file: string | undefined;
  /** Names of the served indexes. */
  readonly indexes: readonly string[];
  /** Options that name a view, such as `--view train`. */
  readonly bound: readonly { readonly option: string; readonly view: string }[];
}

/** The views of a server as its file defines them. An index gets them when it is opened or reloaded. */
export class ServedViews {
  readonly #options: ServedViewsOptions;
  #definitions: readonly ViewDefinition[] = [];

  /** @throws TrawlError as `reload`. */
  constructor(options: ServedViewsOptions, keys: AccessKeys | null) {
    this.#options = options;
    this.reload(keys);
  }

  get definitions(): readonly ViewDefinition[] {
    return this.#definitions;
  }

  /**
   * Reads the file again. With an error the old views stay.
   *
   * @throws TrawlError CONFIG_INVALID for a fault in the file; USAGE if an option or a key is bound to a view that the file does not
   * have, or if a view is for an index that is not served.
   */
  reload(keys: AccessKeys | null): void {
    const { file, indexes, bound } = this.#options;
    const all = [
      ...bound,
      ...(keys?.views ?? []).map((view) => ({ option: `A key of --keys-file (view=${view})`, view })),
    ];
    if (file === undefined) {
      const [first] = all;
      if (first === undefined) return;
      throw usageError(`${first.option} needs --views FILE, the file that defines the view.`);
    }
    const views = readViews(file);
    for (const { option, view } of all) namedView(views, view, option, file);
    for (const view of views) {
      const unknown = view.indexes?.find((index) => !indexes.includes(index));
      if (unknown === undefined) continue;
      throw usageError(
        `${file}: view ${view.name} is for the index ${JSON.stringify(unknown)}, which is not served. Expected ${indexes.join(', ')}.`,
      );
    }
    this.#definitions = views;
  }
}
