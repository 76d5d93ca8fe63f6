import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.CharArraySet;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.StopFilter;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.cjk.CJKAnalyzer;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.analysis.da.DanishAnalyzer;
import org.apache.lucene.analysis.de.GermanAnalyzer;
import org.apache.lucene.analysis.el.GreekAnalyzer;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.analysis.fi.FinnishAnalyzer;
import org.apache.lucene.analysis.fr.FrenchAnalyzer;
import org.apache.lucene.analysis.hy.ArmenianAnalyzer;
import org.apache.lucene.analysis.it.ItalianAnalyzer;
import org.apache.lucene.analysis.nl.DutchAnalyzer;
import org.apache.lucene.analysis.no.NorwegianAnalyzer;
import org.apache.lucene.analysis.pt.PortugueseAnalyzer;
import org.apache.lucene.analysis.ru.RussianAnalyzer;
import org.apache.lucene.analysis.snowball.SnowballFilter;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.analysis.standard.StandardTokenizer;
import org.apache.lucene.analysis.sv.SwedishAnalyzer;
import org.apache.lucene.analysis.ta.TamilAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.analysis.tr.TurkishLowerCaseFilter;
import org.apache.lucene.analysis.util.ElisionFilter;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogDocMergePolicy;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.DisjunctionMaxQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.util.Version;

/**
 * Lucene's analysers and BM25, for `trawl bench bm25` and test/peers. Requests and replies are JSON objects, one per line;
 * bm25_protocol.py defines them and the files. In addition:
 *
 *   {"do": "terms", "analyser": NAME, "texts": PATH, "out": PATH}               ->  {"ms": N, "terms": N}
 *   {"do": "lower_case", "out": PATH}                                           ->  {"java": N}
 *
 * With "titles": PATH, "build" also indexes a title for each text, as a second field. With "titleBoost" and "tieBreaker",
 * "queries" searches both fields, as Elasticsearch's multi_match of type best_fields does.
 *
 * "terms" writes a file of texts: for each text its terms, separated by U+001F. "lower_case" writes for each code point its
 * lower case in this Java as a little-endian 32-bit number, and replies with the version of Java.
 */
public class Lucene {
  private static final String FIELD = "contents";
  private static final String TITLE = "title";
  private static final double WRITER_MEGABYTES = 256;

  public static void main(String[] args) throws Exception {
    PrintStream replies = System.out;
    System.setOut(System.err);
    IndexSearcher.setMaxClauseCount(Integer.MAX_VALUE);
    Lucene engine = new Lucene();
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      String reply;
      try {
        reply = engine.reply(parse(line));
      } catch (Exception | OutOfMemoryError error) {
        reply = "{\"error\":\"" + error.toString().replaceAll("[\\\\\"\\p{Cntrl}]", " ") + "\"}";
      }
      replies.println(reply);
      replies.flush();
    }
  }

  private Analyzer analyzer;
  private IndexSearcher searcher;
  private final List<Query> queries = new ArrayList<>();
  private ScoreDoc[][] found = {};

  private String reply(Map<String, String> request) throws Exception {
    long start = System.nanoTime();
    switch (request.get("do")) {
      case "build":
        return build(request, start);
      case "load":
        return load(request, start);
      case "queries":
        return readQueries(request);
      case "lone":
        return lone(request);
      case "batch":
        return batch(request);
      case "answer":
        return answer(Path.of(request.get("out")), start);
      case "terms":
        return terms(request);
      case "lower_case":
        return lowerCase(Path.of(request.get("out")));
      default:
        throw new IllegalArgumentException("unknown request " + request.get("do"));
    }
  }

  /** One segment, rows in order, without positions. */
  private String build(Map<String, String> request, long start) throws IOException {
    Path folder = Path.of(request.get("folder"));
    FieldType type = new FieldType();
    type.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    type.setTokenized(true);
    type.freeze();
    IndexWriterConfig config = new IndexWriterConfig(analyzer(request));
    config.setRAMBufferSizeMB(WRITER_MEGABYTES);
    // Merges neighbours, so document numbers are row numbers.
    config.setMergePolicy(new LogDocMergePolicy());
    config.setUseCompoundFile(false);
    try (IndexWriter writer = new IndexWriter(FSDirectory.open(folder), config);
        Texts texts = new Texts(request.get("texts"));
        Texts titles = request.containsKey("titles") ? new Texts(request.get("titles")) : null) {
      for (String text = texts.next(); text != null; text = texts.next()) {
        Document document = new Document();
        document.add(new Field(FIELD, text, type));
        if (titles != null) document.add(new Field(TITLE, titles.next(), type));
        writer.addDocument(document);
      }
      writer.forceMerge(1);
      writer.commit();
    }
    double seconds = milliseconds(start) / 1000;
    long bytes = 0;
    for (File file : folder.toFile().listFiles()) bytes += file.length();
    return "{\"seconds\":" + seconds + ",\"bytes\":" + bytes + "}";
  }

  private String load(Map<String, String> request, long start) throws IOException {
    analyzer = analyzer(request);
    Directory directory = new MMapDirectory(Path.of(request.get("folder")));
    searcher = new IndexSearcher(DirectoryReader.open(directory));
    searcher.setSimilarity(
        new BM25Similarity(Float.parseFloat(request.get("k1")), Float.parseFloat(request.get("b"))));
    searcher.setQueryCache(null);
    return "{\"version\":\"Lucene " + Version.LATEST + "\",\"ms\":" + milliseconds(start) + "}";
  }

  private String readQueries(Map<String, String> request) throws IOException {
    List<String> texts = new ArrayList<>();
    try (Texts file = new Texts(request.get("texts"))) {
      for (String text = file.next(); text != null; text = file.next()) texts.add(text);
    }
    queries.clear();
    long start = System.nanoTime();
    String titleBoost = request.get("titleBoost");
    for (String text : texts) {
      queries.add(
          titleBoost == null
              ? query(FIELD, text)
              : new DisjunctionMaxQuery(
                  List.of(new BoostQuery(query(TITLE, text), Float.parseFloat(titleBoost)), query(FIELD, text)),
                  Float.parseFloat(request.get("tieBreaker"))));
    }
    return "{\"ms\":" + milliseconds(start) + "}";
  }

  private Query query(String field, String text) throws IOException {
    BooleanQuery.Builder terms = new BooleanQuery.Builder();
    try (TokenStream stream = analyzer.tokenStream(field, text)) {
      CharTermAttribute term = stream.getAttribute(CharTermAttribute.class);
      stream.reset();
      while (stream.incrementToken()) {
        terms.add(new TermQuery(new Term(field, term.toString())), BooleanClause.Occur.SHOULD);
      }
      stream.end();
    }
    return terms.build();
  }

  private String lone(Map<String, String> request) throws IOException {
    int k = Integer.parseInt(request.get("k"));
    double limit = Double.parseDouble(request.get("limitMs"));
    long start = System.nanoTime();
    StringBuilder times = new StringBuilder();
    found = new ScoreDoc[queries.size()][];
    int done = 0;
    while (done < queries.size() && milliseconds(start) < limit) {
      long from = System.nanoTime();
      found[done] = searcher.search(queries.get(done), k).scoreDocs;
      times.append(done == 0 ? "" : ",").append(milliseconds(from));
      done++;
    }
    found = Arrays.copyOf(found, done);
    return "{\"times\":[" + times + "]}";
  }

  private String batch(Map<String, String> request) throws Exception {
    int k = Integer.parseInt(request.get("k"));
    int threads = Integer.parseInt(request.get("threads"));
    double limit = Double.parseDouble(request.get("limitMs"));
    AtomicInteger next = new AtomicInteger();
    ScoreDoc[][] results = new ScoreDoc[queries.size()][];
    List<Exception> failures = new ArrayList<>();
    long start = System.nanoTime();
    Runnable work = () -> {
      try {
        while (milliseconds(start) < limit) {
          int i = next.getAndIncrement();
          if (i >= results.length) break;
          results[i] = searcher.search(queries.get(i), k).scoreDocs;
        }
      } catch (IOException error) {
        synchronized (failures) {
          failures.add(error);
        }
      }
    };
    List<Thread> running = new ArrayList<>();
    for (int i = 1; i < threads; i++) {
      Thread thread = new Thread(work);
      thread.start();
      running.add(thread);
    }
    work.run();
    for (Thread thread : running) thread.join();
    double ms = milliseconds(start);
    if (!failures.isEmpty()) throw failures.get(0);
    found = Arrays.copyOf(results, Math.min(next.get(), results.length));
    return "{\"queries\":" + found.length + ",\"ms\":" + ms + "}";
  }

  private String answer(Path path, long start) throws IOException {
    try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(path), 1 << 20)) {
      for (ScoreDoc[] hits : found) {
        ByteBuffer bytes = ByteBuffer.allocate(4 + 8 * hits.length).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putInt(hits.length);
        for (ScoreDoc hit : hits) bytes.putInt(hit.doc).putFloat(hit.score);
        out.write(bytes.array());
      }
    }
    return "{\"ms\":" + milliseconds(start) + "}";
  }

  private String terms(Map<String, String> request) throws IOException {
    Analyzer chain = analyzer(request);
    Path path = Path.of(request.get("out"));
    long terms = 0;
    long analysing = 0;
    try (Texts texts = new Texts(request.get("texts")); OutputStream out = new BufferedOutputStream(Files.newOutputStream(path), 1 << 20)) {
      StringBuilder joined = new StringBuilder();
      for (String text = texts.next(); text != null; text = texts.next()) {
        joined.setLength(0);
        long start = System.nanoTime();
        int count = 0;
        try (TokenStream stream = chain.tokenStream(FIELD, text)) {
          CharTermAttribute term = stream.getAttribute(CharTermAttribute.class);
          stream.reset();
          while (stream.incrementToken()) {
            if (count++ > 0) joined.append('\u001f');
            joined.append(term);
          }
          stream.end();
        }
        analysing += System.nanoTime() - start;
        terms += count;
        byte[] bytes = joined.toString().getBytes(StandardCharsets.UTF_8);
        out.write(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(bytes.length).array());
        out.write(bytes);
      }
    }
    return "{\"ms\":" + analysing / 1e6 + ",\"terms\":" + terms + "}";
  }

  private static String lowerCase(Path path) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(4 * (Character.MAX_CODE_POINT + 1)).order(ByteOrder.LITTLE_ENDIAN);
    for (int code = 0; code <= Character.MAX_CODE_POINT; code++) {
      bytes.putInt(Character.toLowerCase(code));
    }
    Files.write(path, bytes.array());
    return "{\"java\":" + Runtime.version().feature() + "}";
  }

  private static Analyzer analyzer(Map<String, String> request) {
    switch (request.get("analyser")) {
      case "english":
        return new EnglishAnalyzer();
      case "standard":
        return new StandardAnalyzer(CharArraySet.EMPTY_SET);
      case "whitespace":
        return new WhitespaceAnalyzer();
      case "cjk":
        return new CJKAnalyzer();
      case "GermanAnalyzer":
        return new GermanAnalyzer();
      case "FrenchAnalyzer":
        return new FrenchAnalyzer();
      case "snowball":
        return snowball(request.get("language"));
      default:
        throw new IllegalArgumentException("unknown analyser " + request.get("analyser"));
    }
  }

  /** The chain of Trawl's Snowball analysers from Lucene's parts. */
  private static Analyzer snowball(String language) {
    Map<String, CharArraySet> articles =
        Map.of("french", FrenchAnalyzer.DEFAULT_ARTICLES, "italian", ITALIAN_ARTICLES);
    String stemmer = language.substring(0, 1).toUpperCase() + language.substring(1);
    return new Analyzer() {
      @Override
      protected TokenStreamComponents createComponents(String field) {
        Tokenizer tokens = new StandardTokenizer();
        TokenStream chain = tokens;
        if (articles.containsKey(language)) chain = new ElisionFilter(chain, articles.get(language));
        chain = language.equals("turkish") ? new TurkishLowerCaseFilter(chain) : new LowerCaseFilter(chain);
        chain = new StopFilter(chain, stopWords(language));
        return new TokenStreamComponents(tokens, new SnowballFilter(chain, stemmer));
      }
    };
  }

  /** Those of ItalianAnalyzer, which keeps them private. */
  private static final CharArraySet ITALIAN_ARTICLES =
      new CharArraySet(
          List.of(
              "c", "l", "all", "dall", "dell", "nell", "sull", "coll", "pell", "gl", "agl", "dagl", "degl", "negl", "sugl", "un",
              "m", "t", "s", "v", "d"),
          true);

  private static CharArraySet stopWords(String language) {
    switch (language) {
      case "armenian":
        return ArmenianAnalyzer.getDefaultStopSet();
      case "danish":
        return DanishAnalyzer.getDefaultStopSet();
      case "dutch":
        return DutchAnalyzer.getDefaultStopSet();
      case "finnish":
        return FinnishAnalyzer.getDefaultStopSet();
      case "french":
        return FrenchAnalyzer.getDefaultStopSet();
      case "german":
        return GermanAnalyzer.getDefaultStopSet();
      case "italian":
        return ItalianAnalyzer.getDefaultStopSet();
      case "norwegian":
        return NorwegianAnalyzer.getDefaultStopSet();
      case "portuguese":
        return PortugueseAnalyzer.getDefaultStopSet();
      case "russian":
        return RussianAnalyzer.getDefaultStopSet();
      case "swedish":
        return SwedishAnalyzer.getDefaultStopSet();
      case "tamil":
        return TamilAnalyzer.getDefaultStopSet();
      case "greek":
        return GreekAnalyzer.getDefaultStopSet();
      default:
        return CharArraySet.EMPTY_SET;
    }
  }

  private static double milliseconds(long since) {
    return (System.nanoTime() - since) / 1e6;
  }

  /** A file of texts: for each its length in bytes as a little-endian 32-bit number, and UTF-8. */
  private static final class Texts implements AutoCloseable {
    private final DataInputStream in;

    Texts(String path) throws IOException {
      in = new DataInputStream(new BufferedInputStream(Files.newInputStream(Path.of(path)), 1 << 20));
    }

    /** Null at the end. */
    String next() throws IOException {
      int length;
      try {
        length = Integer.reverseBytes(in.readInt());
      } catch (EOFException end) {
        return null;
      }
      byte[] bytes = new byte[length];
      in.readFully(bytes);
      return new String(bytes, StandardCharsets.UTF_8);
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }

  private static final Pattern MEMBER =
      Pattern.compile("\"((?:[^\"\\\\]|\\\\.)*)\":(?:\"((?:[^\"\\\\]|\\\\.)*)\"|([-+.0-9eE]+))");

  /** A flat object of strings and numbers. */
  private static Map<String, String> parse(String json) {
    Map<String, String> members = new HashMap<>();
    Matcher member = MEMBER.matcher(json);
    while (member.find()) members.put(member.group(1), member.group(2) == null ? member.group(3) : unescape(member.group(2)));
    return members;
  }

  private static String unescape(String text) {
    StringBuilder plain = new StringBuilder();
    for (int i = 0; i < text.length(); i++) {
      char letter = text.charAt(i);
      if (letter != '\\') {
        plain.append(letter);
        continue;
      }
      char escaped = text.charAt(++i);
      if (escaped == 'u') {
        plain.append((char) Integer.parseInt(text.substring(i + 1, i + 5), 16));
        i += 4;
      } else {
        plain.append("nrtbf".indexOf(escaped) < 0 ? escaped : "\n\r\t\b\f".charAt("nrtbf".indexOf(escaped)));
      }
    }
    return plain.toString();
  }
}
