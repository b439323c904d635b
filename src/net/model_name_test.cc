// SPDX-License-Identifier: Apache-2.0
#include "net/model_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facet {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kHub = "https://huggingface.co";

ModelName Parsed(std::string_view text) {
  const auto name = ParseModelName(text);
  EXPECT_TRUE(name.ok()) << text << ": " << (name.ok() ? "" : name.error().Message());
  return name.ok() ? *name : ModelName();
}

std::string Refusal(std::string_view text) {
  const auto name = ParseModelName(text);
  return name.ok() ? "accepted" : name.error().Message();
}

TEST(IsModelName, TellsNamesFromPaths) {
  for (const auto* name : {"hf:a/b", "hf:", "http://x", "https://x/y"}) {
    EXPECT_TRUE(IsModelName(name)) << name;
  }
  for (const auto* path : {"", "model.gguf", "./hf:a/b", "hf", "ftp://x", "/http://x", "HF:a/b"}) {
    EXPECT_FALSE(IsModelName(path)) << path;
  }
}

TEST(ParseModelName, ReadsNamesOfRepositories) {
  ModelName wanted{.owner = "owner", .repository = "repo-GGUF"};
  EXPECT_EQ(Parsed("hf:owner/repo-GGUF"), wanted);
  wanted.tag = "Q4_K_M";
  EXPECT_EQ(Parsed("hf:owner/repo-GGUF:Q4_K_M"), wanted);
  wanted.revision = "v1.0";
  EXPECT_EQ(Parsed("hf:owner/repo-GGUF@v1.0:Q4_K_M"), wanted);
  wanted.tag = "";
  wanted.file = "BF16/model 1-00001-of-00002.gguf";
  EXPECT_EQ(Parsed("hf:owner/repo-GGUF@v1.0/BF16/model 1-00001-of-00002.gguf"), wanted);
  wanted.file = "a:b@c";  // behind the slash all is the file's name
  EXPECT_EQ(Parsed("hf:owner/repo-GGUF@v1.0/a:b@c"), wanted);
}

TEST(ParseModelName, RefusesWhatIsNoNameOfARepository) {
  for (const std::string text : {"hf:",
                                 "hf:owner",
                                 "hf:/repo",
                                 "hf:owner/",
                                 "hf:owner//file",
                                 "hf:owner/repo/",
                                 "hf:../repo",
                                 "hf:owner/..",
                                 "hf:owner/.",
                                 "hf:owner/repo@",
                                 "hf:owner/repo@..",
                                 "hf:owner/repo:",
                                 "hf:owner/repo:a b",
                                 "hf:owner/repo/../x",
                                 "hf:owner/repo/a/../../x",
                                 "hf:owner/repo//x",
                                 "hf:owner/repo/a\\b",
                                 "hf:owner/repo/a\nb",
                                 "hf:owner/repo/x.part",
                                 "hf:owner/repo/x.part.json",
                                 "hf:owner/x.part",
                                 "hf:owner/repo:x.part.json",
                                 "hf:ow ner/repo",
                                 "hf:owner/re?po",
                                 "hf:owner/r%2Fepo"}) {
    EXPECT_EQ(Refusal(text), "\"" + text +
                                 "\": not a name of a model, wanted "
                                 "hf:OWNER/REPOSITORY[@REVISION][/FILE or :TAG]");
  }
  EXPECT_EQ(Refusal("hf:owner/" + std::string(97, 'r')).substr(0, 10), "\"hf:owner/");
  EXPECT_EQ(Refusal("model.gguf"),
            "\"model.gguf\": not a name of a model, wanted https://HOST/PATH/FILE or "
            "hf:OWNER/REPOSITORY[@REVISION][/FILE or :TAG]");
  EXPECT_EQ(Refusal(std::string(5000, 'a')), "name of a model: 5000 bytes, wanted at most 4096");
}

TEST(ParseModelName, RefusesUrlsThatNameNoFile) {
  EXPECT_EQ(Refusal("https://host"), "\"https://host\": path \"/\", wanted the path of a file");
  EXPECT_EQ(Refusal("https://host/a/../b"),
            "\"https://host/a/../b\": path \"/a/../b\", wanted the path of a file");
  EXPECT_EQ(Refusal("https://host/a/"),
            "\"https://host/a/\": path \"/a/\", wanted the path of a file");
  EXPECT_EQ(Refusal("https://user:pw@host/a"),
            "\"https://user:pw@host/a\": a user name in the URL, wanted none");
  EXPECT_EQ(Refusal("https://host/a#b"), "\"https://host/a#b\": a fragment (#), wanted none");
  EXPECT_EQ(Refusal("https://host/a b"),
            "\"https://host/a b\": a space, a control or a character beyond ASCII, wanted them as "
            "%XX");
  EXPECT_EQ(Refusal("https://ho_st/a"),
            "\"https://ho_st/a\": host \"ho_st\", wanted HOST or HOST:PORT");
  for (const auto* host : {"", ":80", "h:0", "h:65536", "h:x", "h:", ".h", "a..b", "[::1", "[]"}) {
    EXPECT_EQ(
        Refusal(std::string("https://") + host + "/a"),
        std::string("\"https://") + host + "/a\": host \"" + host + "\", wanted HOST or HOST:PORT");
  }
}

// The host is a folder of the cache: a name that a server may have, but no file system that adds
// to it.
TEST(CachePathOfUrl, RefusesAHostTooLongForAFolder) {
  const std::string host(200, 'a');
  EXPECT_TRUE(CachePathOfUrl("https://" + host + "/f").ok());
  const Result<std::string> refused = CachePathOfUrl("https://" + host + "b/f");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().Message(),
            "\"https://" + host + "b/f\": a host of 201 bytes, wanted at most 200");
}

TEST(ParseUrl, TakesUrlsApart) {
  const auto url = ParseUrl("HTTPS://Host.EXAMPLE:8443/a/b?c=/d?", "x");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->scheme, "https");
  EXPECT_EQ(url->authority, "host.example:8443");
  EXPECT_EQ(url->path, "/a/b");
  EXPECT_EQ(url->query, "c=/d?");
  EXPECT_EQ(url->Origin(), "https://host.example:8443");
  EXPECT_EQ(ParseUrl("http://[::1]:80", "x")->path, "/");
  EXPECT_EQ(ParseUrl("http://[::1]", "x")->authority, "[::1]");
  EXPECT_EQ(ParseUrl("ftp://h/a", "x").error().Message(),
            "x: another scheme, wanted http:// or https://");
}

TEST(CachePath, IsReadableWhereItCanBe) {
  EXPECT_EQ(*CachePathOfUrl("https://Host.org/a/b-Q4_0.gguf"), "url/host.org/a/b-Q4_0.gguf");
  const Url hub = *ParseUrl(kHub, "x");
  EXPECT_EQ(CachePathOfRepository(Parsed("hf:o/r/f.gguf"), hub), "hf/huggingface.co/o/r");
  EXPECT_EQ(CachePathOfRepository(Parsed("hf:o/r@v1/f.gguf"), hub), "hf/huggingface.co/o/r@v1");
  EXPECT_EQ(CachePathOfChoice(Parsed("hf:o/r"), hub), "chosen/huggingface.co/o/r@");
  EXPECT_EQ(CachePathOfChoice(Parsed("hf:o/r@v1:Q8_0"), hub), "chosen/huggingface.co/o/r@v1@Q8_0");
}

TEST(CachePath, TellsAllUrlsApart) {
  // The digest was computed with another program: printf URL | sha256sum.
  EXPECT_EQ(*CachePathOfUrl("https://h/a.gguf?download=true"), "url/h/64284b77f4f603aa/a.gguf");
  const std::vector<std::string> urls = {"https://h/x/a.gguf",      "http://h/x/a.gguf",
                                         "https://h:8080/x/a.gguf", "https://h/x/a.gguf?",
                                         "https://h/x/a.gguf?b",    "https://h/x/a%2Egguf",
                                         "https://h/x/a_2Egguf",    "https://h/x_a.gguf"};
  for (const std::string& a : urls) {
    for (const std::string& b : urls) {
      // An empty query is no query.
      const bool is_same =
          a == b || (a == urls[0] && b == urls[3]) || (a == urls[3] && b == urls[0]);
      EXPECT_EQ(*CachePathOfUrl(a) == *CachePathOfUrl(b), is_same) << a << " " << b;
    }
  }
}

TEST(HubUrls, AreThoseOfTheServersInterface) {
  const std::string endpoint(kHub);
  const ModelName name = Parsed("hf:o/r/sub/a b+c.gguf");
  EXPECT_EQ(FileUrl(name, name.file, endpoint),
            "https://huggingface.co/o/r/resolve/main/sub/a%20b%2Bc.gguf");
  EXPECT_EQ(ListingUrl(Parsed("hf:o/r@v1"), endpoint),
            "https://huggingface.co/api/models/o/r/revision/v1?blobs=true");
}

TEST(PartsOf, NamesAllPartsOfASplitModel) {
  EXPECT_THAT(
      *PartsOf("d/m-00002-of-00003.gguf"),
      ElementsAre("d/m-00001-of-00003.gguf", "d/m-00002-of-00003.gguf", "d/m-00003-of-00003.gguf"));
  for (const std::string file : {"m.gguf", "m-0001-of-0002.gguf", "m-00001-of-00002.bin",
                                 "-00001-of-00002.gguf", "m-0000a-of-00002.gguf", ""}) {
    EXPECT_THAT(*PartsOf(file), ElementsAre(file));
  }
  EXPECT_EQ(PartsOf("m-00003-of-00002.gguf").error().Message(),
            "\"m-00003-of-00002.gguf\": part 3 of 2, wanted 1 to the count, which is at most 1000");
  EXPECT_FALSE(PartsOf("m-00000-of-00002.gguf").ok());
  EXPECT_FALSE(PartsOf("m-00001-of-99999.gguf").ok());
}

}  // namespace
}  // namespace facet
