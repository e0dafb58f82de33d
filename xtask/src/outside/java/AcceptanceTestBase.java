package com.github.tomakehurst.wiremock;

import static com.github.tomakehurst.wiremock.core.WireMockConfiguration.wireMockConfig;
import static com.github.tomakehurst.wiremock.testsupport.TestFiles.defaultTestFilesRoot;
import static com.github.tomakehurst.wiremock.testsupport.TestFiles.filePath;

import com.github.tomakehurst.wiremock.client.WireMock;
import com.github.tomakehurst.wiremock.core.WireMockConfiguration;
import com.github.tomakehurst.wiremock.testsupport.WireMockTestClient;
import java.io.File;
import java.nio.file.Files;
import java.util.Locale;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

public class AcceptanceTestBase {
  protected static RemoteServer wireMockServer;
  protected static WireMockTestClient testClient;
  protected static RemoteServer wm;

  @BeforeAll
  public static void setupServer() {
    Locale.setDefault(Locale.ENGLISH);
    setupServerWithEmptyFileRoot();
  }

  @AfterAll
  public static void serverShutdown() {
    wireMockServer.stop();
  }

  public static void setupServerWithEmptyFileRoot() {
    setupServerWithTempFileRoot();
  }

  public static void setupServerWithTempFileRoot() {
    setupServer(wireMockConfig().withRootDirectory(setupTempFileRoot().getAbsolutePath()));
  }

  public static File setupTempFileRoot() {
    try {
      File root = Files.createTempDirectory("wiremock").toFile();
      new File(root, "mappings").mkdirs();
      new File(root, "__files").mkdirs();
      return root;
    } catch (Exception e) {
      throw new RuntimeException(e);
    }
  }

  public static void setupServerWithMappingsInFileRoot() {
    setupServer(wireMockConfig().withRootDirectory(defaultTestFilesRoot()));
  }

  public static void setupServer(WireMockConfiguration options) {
    wireMockServer = new RemoteServer(options.filesRoot().getPath());
    testClient = new WireMockTestClient(wireMockServer.port());
    WireMock.configureFor(new WireMock("127.0.0.1", wireMockServer.port()));
    wm = wireMockServer;
  }

  /** A field's name as WireMock writes it, for tests that compare letters. */
  public static String capitals(String name) {
    return Pattern.compile("(^|-)[a-z]").matcher(name).replaceAll(it -> it.group().toUpperCase());
  }

  @BeforeEach
  public void init() throws InterruptedException {
    WireMock.resetToDefault();
  }
}
